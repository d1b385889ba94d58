/**
 * The parameters of requests. A value that is refused is reported with the values that are allowed.
 */
import { Settings } from "@eventbus/config"
import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"

/** The values that each parameter may have, by its name. */
export const allowed = {
  name: "the name of a binding, or {cluster}:{binding}",
  count: "a whole number, 1 or more",
  tier: "the number of a retry tier, from 1",
  from: "a time: ISO-8601 with Z or an offset, or epoch milliseconds",
  to: "a time later than from: ISO-8601 with Z or an offset, or epoch milliseconds",
  olderThan: "a time (ISO-8601 with Z or an offset, or epoch milliseconds), or a duration such as 7d, 12 hours or P7D"
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

/** Epoch milliseconds; NaN for a text that is no time. */
const timeOf = (text: string): number => {
  if (/^-?\d{1,15}$/.test(text)) return Number(text)
  // A plus sign that a query does not encode arrives as a space.
  const iso = text.replace(/ (?=\d\d:\d\d$)/, "+")
  const [, day] =
    /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[-+]\d\d:\d\d)$/.exec(iso) ??
    /^(\d{4}-\d\d-\d\d)$/.exec(iso) ??
    []
  // JavaScript takes the 30th of February as the 2nd of March.
  const midnight = day === undefined ? Number.NaN : Date.parse(`${day}T00:00:00Z`)
  return Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day!) ? Number.NaN : Date.parse(iso)
}

/** The time before which records are older than a text says; NaN for a text that is neither a time nor a duration. */
export const cutoffOf = (text: string, nowMillis: number): number => {
  const time = timeOf(text)
  return Number.isNaN(time) ? nowMillis - Settings.parseDuration(text) : time
}

export const name = Schema.String.annotate({ description: allowed.name })
export const count = parsed("count", whole)
export const tier = parsed("tier", whole)
export const from = parsed("from", timeOf)
export const to = parsed("to", timeOf)
export const olderThan = Schema.String.annotate({ description: allowed.olderThan }).check(
  Schema.makeFilter((text) => !Number.isNaN(cutoffOf(text, 0)))
)
