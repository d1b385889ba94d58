/**
 * The parameters of requests. A value that is refused is reported with the values that are allowed.
 */
import { Settings } from "@eventbus/config"
import { DeadLetterList, DeadLetterSelection, TopicName } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as SchemaIssue from "effect/SchemaIssue"

/** The values that each parameter may have, by its name. */
export const allowed = {
  name: "the name of a binding, or {cluster}:{binding}",
  count: "a whole number, 1 or more",
  tier: "the number of a retry tier, from 1",
  from: "a time: ISO-8601 with Z or an offset, or epoch milliseconds",
  to: "a time later than from: ISO-8601 with Z or an offset, or epoch milliseconds",
  after: "a time (ISO-8601 with Z or an offset, or epoch milliseconds), or a duration such as 24h: so long ago",
  binding: "the name of a binding, or {cluster}:{binding}",
  olderThan:
    "a time that is not in the future (ISO-8601 with Z or an offset, or epoch milliseconds, from 2000 on), or a duration such as 7d, 12 hours or P7D",
  state: `one or more of ${DeadLetterList.states.join(", ")}, with commas`,
  group: "a fingerprint such as v1-9f86d081884c7d65 or own-payments",
  text: "a text, 1 to 200 characters",
  reason: "a text that says why, for the log: 1 to 1000 characters",
  before: "'next' of the page before",
  next: "'next' of the page before",
  eventType: "the type of an event",
  aggregateType: "the type of an aggregate",
  aggregateId: "the id of an aggregate",
  eventId: "the id of an event: 1 to 36 visible ASCII characters, and spaces between them",
  limit: "a whole number, 1 to 500",
  messages: "true: with the message of each newest failure, for callers who may see payloads",
  position: "the position of a dead letter in its topic, such as 3@17",
  keys: "the number of stranded keys that the list shows, 1 or more",
  parkedPosition: "the position in its source of the record that holds its key, such as 3@1204",
  page: "'next' of the page before",
  heldPosition: "the position of a held record in its topic, such as 3@1204",
  topic:
    "a topic of the binding: that of the record where it is not the main one, or that of the dead letters that are meant",
  id: "the id of a rehearsal",
  runId: "the id of a plan, and of its run",
  transform: "the name of a function of the binding that repairs dead letters",
  lastEventId: "the id of the last event of another stream: the state that it names is not sent again"
} as const

type Name = keyof typeof allowed

const parsed = (name: Name, parse: (text: string) => number) =>
  Schema.String.annotate({ description: allowed[name] }).pipe(
    Schema.decodeTo(Schema.Finite, {
      decode: SchemaGetter.transformEffect((text: string) => {
        const value = parse(text)
        return Number.isNaN(value)
          ? Effect.fail(new SchemaIssue.InvalidValue({ message: allowed[name] }))
          : Effect.succeed(value)
      }),
      encode: SchemaGetter.transform(String)
    })
  )

const whole = (text: string): number => (/^\d{1,15}$/.test(text) && Number(text) >= 1 ? Number(text) : Number.NaN)

const textOf = (name: Name, isGood: (text: string) => boolean) =>
  Schema.String.annotate({ description: allowed[name] }).check(Schema.makeFilter(isGood))

const isState = (text: string): text is DeadLetterList.State => DeadLetterList.states.some((state) => state === text)

export const name = Schema.String.annotate({ description: allowed.name })
export const count = parsed("count", whole)
export const strandedKeys = parsed("keys", whole)
export const tier = parsed("tier", whole)
export const from = parsed("from", Settings.parseTime)
export const to = parsed("to", Settings.parseTime)
/** Its handler knows what time it is, and refuses a time in the future. */
export const olderThan = Schema.String.annotate({ description: allowed.olderThan }).check(
  Schema.makeFilter((text) => !Number.isNaN(Settings.parseCutoff(text, Number.POSITIVE_INFINITY)))
)
export const after = Schema.String.annotate({ description: allowed.after }).check(
  Schema.makeFilter((text) => !Number.isNaN(Settings.parsePast(text, 0)))
)
/** A list in one parameter, since a repeated one is refused. */
export const state = Schema.String.annotate({ description: allowed.state }).pipe(
  Schema.decodeTo(Schema.Array(Schema.Literals(DeadLetterList.states)), {
    decode: SchemaGetter.transformEffect((text: string) => {
      const parts = text.split(",")
      return parts.every(isState)
        ? Effect.succeed(parts)
        : Effect.fail(new SchemaIssue.InvalidValue({ message: allowed.state }))
    }),
    encode: SchemaGetter.transform((states: ReadonlyArray<DeadLetterList.State>) => states.join(","))
  })
)
export const group = textOf("group", (text) => DeadLetterSelection.issues({ fingerprints: [text] }).length === 0)
export const text = textOf("text", ({ length }) => length >= 1 && length <= 200)
export const isReason = (given: unknown): boolean =>
  typeof given === "string" && given.trim() !== "" && given.length <= 1_000
export const reason = textOf("reason", isReason)
export const binding = textOf("binding", ({ length }) => length >= 1 && length <= 1_024)
export const before = textOf("before", DeadLetterList.isCursor)
/** The cursor of dead events is a number that the database gives. */
export const next = textOf("next", (given) => /^\d{1,15}$/.test(given))
const isName = (given: string): boolean => given.trim() !== "" && given.length <= 128
export const eventType = textOf("eventType", isName)
export const aggregateType = textOf("aggregateType", isName)
export const aggregateId = textOf("aggregateId", isName)
export const eventId = Schema.String.annotate({ description: allowed.eventId })
export const limit = parsed("limit", (given) => (whole(given) <= 500 ? whole(given) : Number.NaN))
/** Asked for by name: the audit log notes everybody who is shown a message. */
export const messages = Schema.Literal("true").annotate({ description: allowed.messages })
export const position = Schema.String.annotate({ description: allowed.position })
export const heldPosition = Schema.String.annotate({ description: allowed.heldPosition })
export const parkedPosition = Schema.String.annotate({ description: allowed.parkedPosition })
export const topic = textOf("topic", (given) => TopicName.illegal(given) === undefined)
export const id = Schema.String.annotate({ description: allowed.id })
export const lastEventId = Schema.String.annotate({ description: allowed.lastEventId })
export const transform = textOf("transform", ({ length }) => length >= 1)
export const runId = Schema.String.annotate({ description: allowed.runId })
