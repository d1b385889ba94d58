/**
 * The options that every kind of handler has.
 */
import type {
  BindingOptions,
  CircuitBreaker,
  Classifier,
  DeadLetter,
  DeadLetterRecord,
  Interceptor,
  LetterTransform,
  Serde,
  TopicName
} from "@eventbus/core"
import type * as Effect from "effect/Effect"

/** The options that every kind of handler has. `P` is the requirement of `onDeadLetter` and `probe`. */
export interface Options<K, V, E, P> {
  /** Serde of keys. Default `Serde.bytes`. */
  readonly key?: Serde.Serde<K>
  /** Serde of values. */
  readonly value: Serde.Serde<V>
  /** Routes of errors by tag. Default: the lists of the file (`nonRetryableExceptions` ...); an error without a rule is retried. */
  readonly onError?: BindingOptions.OnError<E>
  /** Classifies errors without a rule in `onError`, before the lists of the file. Default none. */
  readonly classifier?: Classifier.ExceptionClassifier
  /**
   * Every error tag of the handler, with the names that a file may use for it beside the tag, such as `{ GatewayTimeout:
   * ["java.net.SocketTimeoutException"] }`. With it, an unknown error name in the file is refused. Default: names are not checked.
   */
  readonly errors?: { readonly [T in Tags<E>]: ReadonlyArray<string> }
  /** Called with each dead letter under the strategies ALERT_AND_STORE and CUSTOM, which require it. */
  readonly onDeadLetter?: (letter: DeadLetterRecord.DeadLetterRecord) => Effect.Effect<unknown, unknown, P>
  /** Functions that repair dead letters, by name, for plans that name one. Default: none. */
  readonly transforms?: Readonly<Record<string, LetterTransform.LetterTransform<NoInfer<K>, NoInfer<V>>>>
  /** The functions among the settings of dead letters. Default: none. */
  readonly deadLetter?: Pick<DeadLetter.Settings, "topicFor" | "fingerprint">
  /** Interceptors around each call of the handler, the outermost first. Default: none. */
  readonly interceptors?: ReadonlyArray<Interceptor.Interceptor>
  /** Headers that the handler sees in `delivery.headers` beside those of the record. Default: none. */
  readonly enrich?: NonNullable<BindingOptions.Settings<unknown, unknown>["enrich"]>
  /** Names of derived topics by functions of your own. `deadLetter.topic` of the file still names the dead letter topic. Default: the file's `naming`. */
  readonly naming?: TopicName.NamingStrategy
  /** Asks whether the dependency works again, before the breaker becomes half-open. Default: the breaker becomes half-open without it. */
  readonly probe?: CircuitBreaker.Options<P>["probe"]
}

type Tags<E> = E extends { readonly _tag: infer T extends string } ? T : never
