/**
 * Log lines for people and for machines. Every line that is written while a record is handled says which one, whatever format it has: the annotations
 * `cluster`, `bindingName`, `topic`, `partition`, `offset`, `consumerGroup`, `consumerInstance` and `retryTier` (connector seed §4.13).
 *
 * Values of records are in no line that the connector writes, and keys only where the binding has `logKeys`.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { CurrentLogAnnotations } from "effect/References"
import * as Tracer from "effect/Tracer"

/** In the order in which they stand between the brackets. */
const coordinates = ["bindingName", "topic", "partition", "offset", "consumerGroup", "consumerInstance"] as const

/** Where a copy was read first. The messages of the connector say it, too. */
const originals = ["originalTopic", "originalPartition", "originalOffset"] as const

/** Annotations that the line shows elsewhere, or that are left out because they are the usual case. */
const isSaid = (key: string, value: unknown): boolean =>
  coordinates.some((name) => name === key) ||
  value === undefined ||
  originals.some((name) => name === key) ||
  (key === "retryTier" && value === 0) ||
  (key === "cluster" && value === "default")

/**
 * `INFO [orders|orders.events|3|14209|order-group|host-0] Processing record`, further annotations as `name=value` behind it, and the cause of a failure on
 * lines of its own. A coordinate that is not known is `-`; a line that has none has no brackets. Line breaks in a message are escaped: nobody forges a line.
 */
export const text: Logger.Logger<unknown, string> = Logger.make((line) => {
  const annotations = annotationsOf(line)
  const known = coordinates.some((name) => annotations.get(name) !== undefined)
  const place = known ? ` [${coordinates.map((name) => printed(annotations.get(name) ?? "-")).join("|")}]` : ""
  const more = Array.from(annotations).flatMap(([key, value]) =>
    isSaid(key, value) ? [] : [` ${oneLine(key)}=${printed(value)}`]
  )
  const cause = line.cause.reasons.length === 0 ? "" : `\n${prettyCause(line.cause)}`
  return `${line.logLevel.toUpperCase()}${place} ${messages(line.message).map(printed).join(" ")}${more.join("")}${cause}`
})

/** The same behind its time in ISO 8601: `2026-11-28T09:30:00.000Z INFO [orders|…] Processing record`. */
export const timedText: Logger.Logger<unknown, string> = Logger.make(
  (line) => `${line.date.toISOString()} ${text.log(line)}`
)

/**
 * One JSON object per line: `timestamp` (ISO 8601), `level`, `message`, all annotations, `cause` of a failure, and `trace_id` and `span_id` within a span.
 * Offsets beyond 2^53 are texts.
 */
export const json: Logger.Logger<unknown, string> = Logger.make((line) => {
  const span = Context.getOrUndefined(line.fiber.context, Tracer.ParentSpan)
  const all = messages(line.message)
  const own = {
    timestamp: line.date.toISOString(),
    level: line.logLevel.toUpperCase(),
    message: all.length === 1 ? all[0] : all,
    ...(line.cause.reasons.length === 0 ? {} : { cause: prettyCause(line.cause) }),
    ...(span === undefined ? {} : { trace_id: span.traceId, span_id: span.spanId })
  }
  return (
    asJson({ ...Object.fromEntries(annotationsOf(line)), ...own }) ??
    JSON.stringify({ ...own, message: "a message that cannot be written" })
  )
})

/** Writes the program's log as `text`, to standard output. */
export const layerText: Layer.Layer<never> = Logger.layer([Logger.withConsoleLog(text)])

/** Writes the program's log as `timedText`, to standard output. */
export const layerTimedText: Layer.Layer<never> = Logger.layer([Logger.withConsoleLog(timedText)])

/** Writes the program's log as `json`, to standard output. */
export const layerJson: Layer.Layer<never> = Logger.layer([Logger.withConsoleLog(json)])

/** A log line never throws, whatever the error in it does when somebody reads it. */
const prettyCause = (cause: Cause.Cause<unknown>): string => {
  try {
    return Cause.pretty(cause)
  } catch {
    return "a cause that cannot be written"
  }
}

const annotationsOf = ({ fiber }: Logger.Options<unknown>): ReadonlyMap<string, unknown> =>
  new Map(Object.entries(fiber.getRef(CurrentLogAnnotations)))

const messages = (message: unknown): ReadonlyArray<unknown> => (Array.isArray(message) ? message : [message])

const printed = (value: unknown): string =>
  oneLine(typeof value === "string" ? value : (asJson(value) ?? asText(value)))

const asText = (value: unknown): string => {
  try {
    return String(value)
  } catch {
    return "a value that cannot be written"
  }
}

const asJson = (value: unknown): string | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  try {
    return JSON.stringify(value, writable())
  } catch {
    return undefined
  }
}

/** Values that JSON has no form for, or would leave empty. An object that contains itself is named where it comes again. */
const writable = () => {
  const within: Array<unknown> = []
  return function (this: unknown, _key: string, value: unknown): unknown {
    if (typeof value === "bigint") {
      const number = Number(value)
      return Number.isSafeInteger(number) ? number : value.toString()
    }
    if (typeof value !== "object" || value === null) return value
    while (within.length > 0 && within.at(-1) !== this) within.pop()
    if (within.includes(value)) return "[Circular]"
    within.push(value)
    return value instanceof Error ? { name: value.name, message: value.message } : value
  }
}

const controls = /[\p{Cc}\u2028\u2029]/gu

/** The text with an escape for each control character and line separator, such as `\\u000a`: whatever it holds, it is one line of a log. */
export const oneLine = (value: string): string =>
  value.replace(controls, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`)
