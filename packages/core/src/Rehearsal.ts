/**
 * Rehearsals say what today's code would do with dead letters, before anybody replays them.
 *
 * ```ts
 * import { Binding, type Rehearsal } from "@eventbus/core"
 * import { Context, Effect, Layer } from "effect"
 *
 * class Gateway extends Context.Service<Gateway, { readonly charge: (offset: bigint) => Effect.Effect<void> }>()("Gateway") {}
 *
 * const orders = Binding.make("orders", {
 *   topic: "orders",
 *   groupId: "billing",
 *   handler: ({ record }) => Gateway.use((gateway) => gateway.charge(record.offset))
 * })
 *
 * // Checks the order, and charges nobody.
 * const DryRun = Layer.succeed(Gateway, Gateway.of({ charge: () => Effect.void }))
 *
 * export const rehearsable = Binding.rehearsable(orders, DryRun)
 * export const isSafe = ({ passes, selected }: Rehearsal.Report) => passes === selected
 * ```
 */
import * as Schema from "effect/Schema"
import type { State } from "./DeadLetterList.ts"
import type { Position } from "./DeadLetterSelection.ts"
import type { Route } from "./Route.ts"
import type { DecodeFailure } from "./Serde.ts"

/** The bounds of a rehearsal. */
export interface Options {
  /** Most dead letters that are rehearsed, 1 or more. Default 100 000. */
  readonly limit?: number
  /** Longest time of the whole rehearsal, in milliseconds, 1 or more. The call that it ends has no verdict. Default 5 minutes. */
  readonly timeoutMillis?: number
  /** The name of a function of the binding (`transforms`) that repairs each letter first, as a run with it would. Default: none. */
  readonly transform?: string
  /** Most dead letters that `Report.letters` names, 0 or more, or `Infinity`. The counts have all of them. Default 1000. */
  readonly listed?: number
}

/**
 * The fate that a dead letter would have.
 *
 * - `Passes`: key and value can be decoded, and the handler succeeds.
 * - `Decodes`: key and value can be decoded. The handler was not called, since the binding has no layer for it.
 * - `Undecodable`: today's serdes cannot read it either.
 * - `Fails`: the handler fails, and the rules for errors say this route. A handler that interrupts itself fails as `Interrupted`.
 * - `TimedOut`: the handler had not ended after the longest time of a call, and was interrupted.
 * - `Stays`: the transform skips the letter, fails for it, or makes what the serdes cannot encode: a run would leave it.
 * - `Skipped`: a replay would not take it.
 */
export type Verdict =
  | { readonly _tag: "Passes" }
  | { readonly _tag: "Decodes" }
  | {
      readonly _tag: "Undecodable"
      /** Why the key cannot be decoded; undefined when it can be. */
      readonly key: DecodeFailure | undefined
      /** Why the value cannot be decoded; undefined when it can be. */
      readonly value: DecodeFailure | undefined
    }
  | {
      readonly _tag: "Fails"
      /** The class of the error. */
      readonly exceptionClass: string
      /** Its message. It may quote the record. */
      readonly message: string
      /** Where the record would go. */
      readonly route: Route
    }
  | {
      readonly _tag: "TimedOut"
      /** After how many milliseconds. */
      readonly millis: number
    }
  | {
      readonly _tag: "Stays"
      /** The words of the transform. They may quote the record. */
      readonly reason: string
    }
  | {
      readonly _tag: "Skipped"
      /** The state that no replay takes; `refused` when no replay publishes to the topic that it came from. */
      readonly because: Exclude<State, "waiting" | "failed" | "exhausted"> | "refused"
    }

/** The verdict about one dead letter. */
export interface LetterVerdict extends Position {
  /** Its group. */
  readonly fingerprint: string
  /** The fate that it would have. */
  readonly verdict: Verdict
}

/** How many dead letters have each verdict. */
export interface Counts {
  /** All that were rehearsed or skipped. */
  readonly selected: number
  /** `Passes`. */
  readonly passes: number
  /** `Decodes`. */
  readonly decodes: number
  /** `Undecodable`. */
  readonly undecodable: number
  /** `Fails`. */
  readonly fails: number
  /** `TimedOut`. */
  readonly timedOut: number
  /** `Stays`. */
  readonly stays: number
  /** `Skipped`. */
  readonly skipped: number
  /** Of all but the skipped ones, those in state `exhausted`: a replay takes them only with `ignoreMaxReplays`. */
  readonly exhausted: number
}

/** A way in which dead letters of a group would fail. */
export interface FailureCount {
  /** The class of the error. */
  readonly exceptionClass: string
  /** The message of the first one. It may quote the record. */
  readonly message: string
  /** Where the records would go. */
  readonly route: Route
  /** How many. */
  readonly count: number
}

/** The verdicts about the dead letters of one group. */
export interface GroupVerdict extends Counts {
  /** The group; `other` stands for all behind the first 1000. */
  readonly fingerprint: string
  /** The class of the error that brought one of them here. */
  readonly exceptionClass: string
  /** How they would fail, the most frequent first: at most 20 ways. */
  readonly failures: ReadonlyArray<FailureCount>
}

/** The result of a rehearsal. */
export interface Report extends Counts {
  /** `handler`: the handler was called in the binding's layer for rehearsals. `decode`: the binding has none, so records were decoded and nothing else. */
  readonly mode: "handler" | "decode"
  /** Whether every selected dead letter has its verdict. False when a bound of the rehearsal ended it, and when a batch that may hold some cannot be read: the batch counts as one that is skipped. */
  readonly complete: boolean
  /** The groups: that with most dead letters comes first. */
  readonly groups: ReadonlyArray<GroupVerdict>
  /** The verdicts one by one, in the order of partitions and offsets, as far as the options ask for them. */
  readonly letters: ReadonlyArray<LetterVerdict>
  /** Records that a transactional handler would have published, and did not. */
  readonly published: number
  /** When it began, epoch milliseconds. */
  readonly startedMillis: number
  /** How long it took, in milliseconds. */
  readonly tookMillis: number
}

/** The layer that `Binding.rehearsable` was given failed, or was not built within 30 seconds. No handler was called. */
export class DryRunLayerFailed extends Schema.TaggedError<DryRunLayerFailed>()("DryRunLayerFailed", {
  /** The binding, `{cluster}:{binding}`. */
  binding: Schema.String,
  /** The failure of the layer, as text. */
  reason: Schema.String
}) {
  override get message(): string {
    return `Binding '${this.binding}' cannot be rehearsed: its layer for rehearsals failed: ${this.reason}. No handler was called.`
  }
}
