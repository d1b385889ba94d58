/**
 * Functions that repair dead letters: a run of a plan names one, and publishes what it makes. The dead letter itself stays as it is in its topic.
 *
 * ```ts
 * import { Binding, LetterTransform, Serde } from "@eventbus/core"
 * import { Effect, Schema } from "effect"
 *
 * const Order = Schema.Struct({ id: Schema.String, currency: Schema.String })
 *
 * export const orders = Binding.make("orders", {
 *   topic: "orders",
 *   groupId: "billing",
 *   value: Serde.json(Order),
 *   handler: () => Effect.void,
 *   transforms: {
 *     "add-currency": ({ value }) =>
 *       value === null
 *         ? Effect.fail(new LetterTransform.Skip({ reason: "a tombstone" }))
 *         : Effect.succeed({ value: { ...JSON.parse(new TextDecoder().decode(value)), currency: "EUR" } })
 *   }
 * })
 * ```
 */
import type * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { DecodedDeadLetter } from "./DeadLetterList.ts"
import type { DeadLetterRecord } from "./DeadLetterRecord.ts"
import type { DecodeFailure } from "./Serde.ts"

/** The function leaves this dead letter as it is: it is not published, stays in its topic, and counts as refused. */
export class Skip extends Schema.TaggedError<Skip>()("Skip", {
  /** Why, in words for an operator. */
  reason: Schema.String
}) {
  override get message(): string {
    return this.reason
  }
}

/** The content of the copy. */
export interface Transformed<K, V> {
  /** The serde of the binding makes bytes of it. A value that it cannot encode leaves the dead letter as `Skip` does. */
  readonly value: V
  /** Another key, for which the copy may go to another partition. Default: the bytes of the dead letter's key. */
  readonly key?: K
}

/**
 * Repairs one dead letter. It may be called more than once for the same one, so it has no effects beside its answer. A call that fails, dies, returns no Effect, or takes longer
 * than 30 seconds leaves the dead letter as `Skip` does.
 */
export type LetterTransform<K, V> = (letter: DeadLetterRecord) => Effect.Effect<Transformed<K, V>, Skip>

/** The content of a copy that a run would publish. */
export interface TransformedLetter {
  /** The dead letter with the key, the value and the headers of the copy; all else of it is as before. */
  readonly letter: DeadLetterRecord
  /** The new key as the binding's serde reads it today, or why it cannot. */
  readonly key: Result.Result<unknown, DecodeFailure>
  /** The new value as the binding's serde reads it today, or why it cannot: then the copy would be dead-lettered again. */
  readonly value: Result.Result<unknown, DecodeFailure>
}

/**
 * The effect of a function on one dead letter.
 *
 * - `Copied`: a run publishes a copy with the content `after`.
 * - `Stays`: the function skips the letter, fails for it, or makes what the serdes cannot encode; or the letter's batch cannot be read.
 */
export type Preview =
  | {
      readonly _tag: "Copied"
      /** The dead letter as it lies in its topic, without its history. */
      readonly before: DecodedDeadLetter
      /** The content of the copy. */
      readonly after: TransformedLetter
    }
  | {
      readonly _tag: "Stays"
      /** The dead letter as it lies in its topic, without its history. */
      readonly before: DecodedDeadLetter
      /** Why, in words. They may quote the record. */
      readonly reason: string
    }
