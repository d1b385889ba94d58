/**
 * The events of a dead letter strategy. None of them changes the fate of a stored record.
 */
import type { BrokerError } from "../../BrokerError.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import type { Failure } from "../../Failure.ts"
import type { Report } from "../../Replay.ts"

export type StrategyEvent =
  /** The alert handler failed or died, or it was interrupted after its timeout. */
  | { readonly _tag: "AlertFailed"; readonly letter: DeadLetterRecord; readonly failure: Failure }
  /** The queue of alerts is full, and this alert was dropped. */
  | { readonly _tag: "AlertDropped" }
  /** The custom handler failed or died. The record stays in the topic, and the next one follows. */
  | { readonly _tag: "LetterHandlerFailed"; readonly letter: DeadLetterRecord; readonly failure: Failure }
  /** A scheduled replay dealt with at least one record. */
  | { readonly _tag: "ScheduledReplay"; readonly report: Report }
  /** A scheduled replay, or the consumer of a custom handler, failed and retries. */
  | { readonly _tag: "StrategyFailed"; readonly error: BrokerError; readonly retryInMillis: number }

export type OnEvent = (event: StrategyEvent) => void
