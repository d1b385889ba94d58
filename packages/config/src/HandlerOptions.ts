/**
 * What every kind of handler takes beside the handler itself.
 */
import type { BindingOptions, CircuitBreaker, Classifier, DeadLetterRecord, Serde } from "@eventbus/core"
import type { Effect } from "effect"

/** What every kind of handler takes. `P` is what the code beside the handler requires. */
export interface Options<K, V, E, P> {
  /** How to read keys. Default `Serde.bytes`. */
  readonly key?: Serde.Serde<K>
  /** How to read values. */
  readonly value: Serde.Serde<V>
  /** Where errors go, by tag. Default: what the file says (`nonRetryableExceptions` ...); an error that it does not name is retried. */
  readonly onError?: BindingOptions.OnError<E>
  /** What errors without a rule in `onError` mean; asked before the file's lists. */
  readonly classifier?: Classifier.ExceptionClassifier
  /**
   * Every error that the handler fails with, by tag, with the names that a file may use for it beside the tag, such as
   * `{ GatewayTimeout: ["java.net.SocketTimeoutException"] }`. With it, a name in the file that none of them has is refused. Default: not checked.
   */
  readonly errors?: { readonly [T in Tags<E>]: ReadonlyArray<string> }
  /** For the strategies ALERT_AND_STORE and CUSTOM. */
  readonly onDeadLetter?: (letter: DeadLetterRecord.DeadLetterRecord) => Effect.Effect<unknown, unknown, P>
  /** Asked whether the dependency is back, before the breaker half-opens. */
  readonly probe?: CircuitBreaker.Options<P>["probe"]
}

type Tags<E> = E extends { readonly _tag: infer T extends string } ? T : never
