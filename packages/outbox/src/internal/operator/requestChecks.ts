/** Everything that is wrong with the arguments of an operator, before the database is asked. */
import { Kinds, type Ranges } from "@eventbus/core"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { Plan } from "../../DeadEvents.ts"
import type { InvalidOutboxConfig } from "../../OutboxError.ts"
import { deadEventOperator as range } from "../../OutboxRanges.ts"
import { isEventId } from "../base/envelopeChecks.ts"
import { problemsOf } from "../base/options.ts"
import { planId } from "./planId.ts"

type Issues = InvalidOutboxConfig["issues"]

const mostInSelection = 1_000

const listed = (entry: Kinds.Kind, what: string): Kinds.Kind => {
  const allowed = `a list of 1 to ${mostInSelection} ${what}`
  const isOfLength = Kinds.make(
    allowed,
    (list) => Array.isArray(list) && list.length >= 1 && list.length <= mostInSelection
  )
  return (path, found) => {
    const issues = isOfLength(path, found)
    return issues.length > 0 ? issues : Kinds.listOf(entry)(path, found)
  }
}

const eventId = Kinds.make(
  "the id of an event: 1 to 36 visible ASCII characters, and spaces between them",
  (text) => typeof text === "string" && isEventId(text)
)

const columns = { eventType: Kinds.name, aggregateType: Kinds.name, aggregateId: Kinds.name }

const selectionTable: Readonly<Record<string, Kinds.Kind>> = {
  groups: listed(Kinds.name, "fingerprints"),
  ...columns,
  eventIds: listed(eventId, "event ids"),
  all: Kinds.make("true", (value) => value === true)
}

/** The issues of names that no field has: a slip of one would take more events, or with less care, than its author meant. */
const unknownNames = (given: unknown, fields: ReadonlyArray<string>, prefix = ""): Issues =>
  Object.keys(Predicate.isObject(given) ? given : {})
    .filter((name) => !fields.includes(name))
    .map((name) => ({ path: `${prefix}${name}`, found: "an unknown key", allowed: fields.join(", ") }))

/** A selection without a field is refused: it might be a mistake, and would take everything. So is 'all' beside another field, of which only one can be meant. */
const selection: Kinds.Kind = (path, found) => {
  const unknown = unknownNames(found, Object.keys(selectionTable), `${path}.`)
  const issues = [...Kinds.struct(selectionTable)(path, found), ...unknown]
  if (issues.length > 0) return issues
  const given = found as Record<string, unknown>
  const used = Object.keys(selectionTable).filter((name) => given[name] !== undefined)
  const others = used.filter((name) => name !== "all").join(", ")
  if (used.includes("all") && others !== "")
    return [{ path: `${path}.all`, found: "true", allowed: `no 'all' beside ${others}` }]
  const names = Object.keys(selectionTable).join(", ")
  return used.length === 0 ? [{ path, found: "a selection without a field", allowed: `one of ${names} at least` }] : []
}

const longestReason = 1_000

export const reason = Kinds.make(
  `a text that says why, of 1 to ${longestReason} characters`,
  (text) => Kinds.nameProblem(text) === undefined && (text as string).length <= longestReason
)

const aboutReplays: Readonly<Record<string, Ranges.Range>> = {
  rate: range.rate,
  canary: range.canary,
  canaryWait: range.canaryWait,
  stopAbove: range.stopAbove
}

const ofReplayOnly = Kinds.make("nothing: only replay has it", () => false)

const required = { action: Kinds.oneOf(["replay", "discard"]), select: selection, reason }
const fields = Object.keys({ ...required, ...aboutReplays })

/** All issues of a request for a plan. */
export const requestIssues = (request: unknown): Issues => {
  const { action, ...given } = { ...(request as Record<string, unknown>) }
  const issues = [...problemsOf(request, aboutReplays, required), ...unknownNames(request, fields)]
  if (action !== "discard") return issues
  const needless = Object.keys(aboutReplays).filter((name) => given[name] !== undefined)
  return [...issues, ...needless.flatMap((path) => ofReplayOnly(path, given[path]))]
}

const cursor = Kinds.make(
  "the cursor of the page before",
  (text) => typeof text === "string" && /^\d{1,19}$/.test(text)
)

/** All issues of a query for a page. */
export const queryIssues = (query: unknown): Issues =>
  problemsOf(query, { group: Kinds.name, ...columns, after: cursor, limit: range.limit })

/** All issues of a plan, which may come from a file: it is of another form, of another table, or was changed. */
export const planIssues = (plan: unknown, table: string): Issues => {
  if (!Schema.is(Plan)(plan))
    return [{ path: "plan", found: "a value of another form", allowed: "a plan as it was made" }]
  const issue = (path: string, found: string, allowed: string) => [{ path: `plan.${path}`, found, allowed }]
  if (plan.table !== table) return issue("table", plan.table, `${table}, the event table of this outbox`)
  if (plan.id !== planId(plan)) return issue("id", plan.id, "the hash of the plan, which was changed since it was made")
  return []
}
