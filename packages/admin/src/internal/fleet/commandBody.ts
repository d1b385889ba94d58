/**
 * Reads the bodies of start, stop, pause and resume, and reports everything that is wrong with one with its path. Without a body they are about this process.
 */
import { Settings } from "@eventbus/config"
import type { FleetView } from "@eventbus/core"
import * as Result from "effect/Result"
import type { ParameterIssue } from "../../AdminError.ts"
import { allowed, isReason } from "../requests/parameters.ts"
import { isRecord, kindOf, notAnObject, unknownKeys } from "../requests/selectionBody.ts"

/** A command on a binding of this process, or on the binding in all of them. */
export interface CommandBody {
  readonly scope: "process" | "fleet"
  readonly reason?: string
  readonly tier?: number
  /** Epoch milliseconds. */
  readonly until?: number
}

const properties = {
  scope: { type: "string", enum: ["process", "fleet"], description: "Default process" },
  reason: { type: "string", minLength: 1, maxLength: 1_000, description: "Why. Required for scope fleet" },
  tier: { type: "integer", minimum: 1, description: "The retry tier; default: the whole binding" },
  until: {
    type: ["string", "number"],
    description: `When a pause of scope fleet ends by itself: ISO-8601 with Z or an offset, or epoch milliseconds`
  }
}

/** The keys of each body. */
const keysOf: Readonly<Record<FleetView.Verb, ReadonlyArray<keyof typeof properties>>> = {
  ...{ start: ["scope", "reason"], stop: ["scope", "reason"], resume: ["scope", "reason", "tier"] },
  pause: ["scope", "reason", "tier", "until"]
}

/** The body of a verb, for the OpenAPI document. */
export const jsonSchema = (verb: FleetView.Verb) => ({
  ...{ type: "object", additionalProperties: false },
  properties: Object.fromEntries(keysOf[verb].map((key) => [key, properties[key]]))
})

/** The parameters of the query. A body may have them in its stead. */
export interface Query {
  readonly reason?: string
  readonly tier?: number
}

/** A reader of the bodies of this verb. */
export const reader =
  (verb: FleetView.Verb, query: Query) =>
  (body: unknown): Result.Result<CommandBody, ReadonlyArray<ParameterIssue>> => {
    const keys = keysOf[verb]
    if (!isRecord(body)) return notAnObject(body, keys.join(", "))
    const { scope = "process", reason = query.reason, tier = query.tier, until } = body
    const untilMillis = typeof until === "string" ? Settings.parseTime(until) : until
    const isFleet = scope === "fleet"
    const issue = (path: string, isWrong: boolean, expected: string): ReadonlyArray<ParameterIssue> =>
      isWrong ? [{ path, found: kindOf(body[path]), allowed: expected }] : []
    const issues = [
      ...unknownKeys(body, keys),
      ...["reason", "tier"].flatMap((path) =>
        issue(
          path,
          Reflect.has(query, path) && Object.hasOwn(body, path),
          "a value in the body or in the query, not in both"
        )
      ),
      ...issue("scope", scope !== "process" && !isFleet, "process or fleet"),
      ...issue("reason", reason === undefined ? isFleet : !isReason(reason), allowed.reason),
      ...issue("tier", tier !== undefined && !(Number.isSafeInteger(tier) && Number(tier) >= 1), allowed.tier),
      ...issue("until", until !== undefined && !isTime(untilMillis), allowed.from),
      ...issue("until", until !== undefined && scope === "process", "no value: a pause of this process has no end")
    ]
    return issues.length === 0
      ? // It has no issues, so it is one.
        Result.succeed({
          scope,
          ...(reason === undefined ? {} : { reason }),
          ...(tier === undefined ? {} : { tier }),
          ...(until === undefined ? {} : { until: untilMillis })
        } as CommandBody)
      : Result.fail(issues)
  }

const isTime = (value: unknown): boolean => typeof value === "number" && !Number.isNaN(new Date(value).getTime())
