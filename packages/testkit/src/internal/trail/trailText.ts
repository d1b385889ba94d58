/**
 * A trail as text, one line for each delivery. Equal runs give equal text, so it can stand in an inline snapshot.
 */
import * as Duration from "effect/Duration"
import type { DeliveryStep } from "./deliverySteps.ts"
import type { Position } from "./eventRecorder.ts"

/** Longer messages are cut: the line only has to identify the error. */
const mostMessageCharacters = 80

/** A duration, such as `1m 300ms`. */
export const durationText = (millis: number): string =>
  millis === 0 ? "0ms" : Duration.format(Duration.millis(millis))

/** The position of a record, such as `orders-3@17`. */
export const positionText = ({ topic, partition, offset }: Position): string => `${topic}-${partition}@${offset}`

/** Times count from the record's publication. `deadLetterReason` is the reason in the dead letter itself. */
export const lines = (
  steps: ReadonlyArray<DeliveryStep>,
  publishedMillis: number,
  deadLetterReason: string | undefined
): ReadonlyArray<string> => {
  const cells = steps.map((hop) => [
    `+${durationText(hop.atMillis - publishedMillis)}`,
    hop.partition === undefined || hop.offset === undefined
      ? hop.topic
      : positionText({ topic: hop.topic, partition: hop.partition, offset: hop.offset }),
    outcomeText(hop, deadLetterReason)
  ])
  const width = (column: number) => Math.max(...cells.map((row) => row[column]?.length ?? 0))
  const widths = [width(0), width(1)]
  return cells.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
}

const outcomeText = (hop: DeliveryStep, deadLetterReason: string | undefined): string => {
  switch (hop.outcome) {
    case "Handled":
      return hop.attempts > 1 ? `handled, attempt ${hop.attempts}` : "handled"
    case "Routed":
      return `${failed(hop)} > ${hop.target}`
    case "DeadLettered":
      return `${failed(hop)} > ${hop.target}${deadLetterReason === undefined ? "" : ` (${deadLetterReason})`}`
    case "Skipped":
      return hop.failure === undefined ? "skipped" : `${failed(hop)}, skipped`
    case "Halted":
      return `${failed(hop)}, halted its partition`
    case "HeldByBreaker":
      return "held back by the circuit breaker"
    case "Abandoned":
      return "given up with its partition, to be delivered again"
    case "CutOff":
      return "cut off, to be delivered again"
    case "Running":
      return hop.failure === undefined ? "in the handler" : `${failed(hop)}, to be tried again`
    case "Waiting":
      return `due in tier ${hop.tier}`
  }
}

const failed = ({ attempts, failure }: DeliveryStep): string => {
  const times = attempts === 0 ? "not handled" : attempts === 1 ? "failed" : `failed ${attempts} times`
  return failure === undefined ? times : `${times}: ${errorText(failure)}`
}

/** An error as its class, and its message if that says more. */
export const errorText = ({ className, message }: { readonly className: string; readonly message: string }): string => {
  const line = message.split("\n", 1)[0]?.trim() ?? ""
  if (line === "" || line === className || line === "An error has occurred") return className
  // An error without a message shows its fields as JSON; the tag in it repeats the class.
  const tag = `{"_tag":${JSON.stringify(className)}`
  if (line === `${tag}}`) return className
  return line.startsWith(`${tag},`) ? `${className} {${cut(line.slice(tag.length + 1))}` : `${className}: ${cut(line)}`
}

const cut = (line: string): string =>
  line.length > mostMessageCharacters ? `${line.slice(0, mostMessageCharacters - 1)}…` : line
