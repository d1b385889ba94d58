/** The parts of a dead letter that several commands print: its error, where it was first, and what was done about it. */
import type * as DeadLetterAnswers from "@eventbus/admin/DeadLetterAnswers"

type Failed = Pick<DeadLetterAnswers.Summary, "origin" | "exceptionClass"> & { readonly exceptionMessage?: string }

/** The class of a letter whose headers name no error. */
const noClass = "unknown"

/** Whether no header says what failed: nothing of the connector, and nothing that it knows of another client. */
const hasNoError = ({ origin, exceptionClass, exceptionMessage = "" }: Failed): boolean =>
  origin === "unknown" && exceptionClass === noClass && exceptionMessage === ""

/** Such as `GatewayDown: 503 from the gateway`. */
export const errorText = (letter: Failed): string =>
  hasNoError(letter)
    ? "unknown: no header says why it failed"
    : [letter.exceptionClass, letter.exceptionMessage ?? ""].filter((part) => part !== "").join(": ")

/** Where the record was first, such as `orders-3@204`. */
export const originText = (letter: DeadLetterAnswers.Summary): string =>
  letter.origin === "unknown"
    ? "unknown: no header says where the record was first; a replay publishes it to the topic of the binding"
    : `${letter.originalTopic}-${letter.originalPartition}@${letter.originalOffset}`

/** Such as `replayed 2026-11-28T09:30:00.000Z by ann in run 6f1c…, copy orders-3@17: INC-1204`. */
export const eventText = ({ action, at, by, run, copy, reason }: DeadLetterAnswers.LetterEvent): string => {
  const parts = [
    action,
    at,
    by === undefined ? undefined : `by ${by}`,
    run === undefined ? undefined : `in run ${run}`,
    copy === undefined ? undefined : `copy ${copy}`
  ]
  return `${parts.filter((part) => part !== undefined).join(" ")}${reason === undefined ? "" : `: ${reason}`}`
}
