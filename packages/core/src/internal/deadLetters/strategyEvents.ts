/**
 * What a dead letter strategy reports. None of it changes the fate of a record that is stored.
 */
import type { BrokerError } from "../../BrokerError.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import type { Report } from "../../Replay.ts"
import type { Failure } from "../failure/failure.ts"

export type StrategyEvent =
  /** The alert handler failed, or died; or it was cut off after its timeout. */
  | { readonly _tag: "AlertFailed"; readonly letter: DeadLetterRecord; readonly failure: Failure }
  /** Too many alerts wait: this one is not given. */
  | { readonly _tag: "AlertDropped" }
  /** The custom handler failed, or died: the record stays, and the next one follows. */
  | { readonly _tag: "LetterHandlerFailed"; readonly letter: DeadLetterRecord; readonly failure: Failure }
  /** A scheduled replay found something to do. */
  | { readonly _tag: "ScheduledReplay"; readonly report: Report }
  /** A scheduled replay, or the consumer of a custom handler, cannot do its work, and tries again. */
  | { readonly _tag: "StrategyFailed"; readonly error: BrokerError; readonly retryInMillis: number }

export type OnEvent = (event: StrategyEvent) => void
