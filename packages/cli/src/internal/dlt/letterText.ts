/** Replays of a dead letter and decisions about it, for a terminal. */
import type * as DeadLetterAnswers from "@eventbus/admin/DeadLetterAnswers"

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
