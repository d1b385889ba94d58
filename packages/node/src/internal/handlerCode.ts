/** The functions among a consumer's options, as the core takes them. */
import type { BindingSettings, HandlerOptions } from "@eventbus/config"
import { type Classifier, type IdempotencyStore, LetterTransform, Serde } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { CommonOptions } from "../ConsumerOptions.ts"
import type { ErrorRule } from "../ErrorRule.ts"
import { millisOf } from "./millisOf.ts"
import * as PromiseCall from "./promiseCall.ts"
import * as PromiseInterceptor from "./promiseInterceptor.ts"

/** How a handler is called in log lines. */
export const handlerOf = (name: string): string => `the handler of consumer '${name}'`

/** How long an aborted promise is waited for: the part of `maxPollInterval` that the processing budget leaves. */
export const endMillis = ({ maxPollIntervalMs }: BindingSettings.BindingSettings): number =>
  Math.ceil(maxPollIntervalMs * 0.3)

/** All but the handler. */
export const of = <K, V>(
  name: string,
  settings: BindingSettings.BindingSettings,
  options: Partial<CommonOptions<K, V>>
): HandlerOptions.Options<K, V, unknown, never> => {
  const { key, value, onError = [], classifier, deadLetter = {}, circuitBreaker = {}, naming, enrich } = options
  const { onDeadLetter, topicFor, fingerprint } = deadLetter
  const { probe } = circuitBreaker
  return {
    // Without a serde the type is that of bytes.
    value: value ?? (Serde.bytes as Serde.Serde<unknown> as Serde.Serde<V>),
    ...(key === undefined ? {} : { key }),
    classifier: classifierOf(onError, classifier),
    deadLetter: { topicFor, fingerprint },
    interceptors: (options.interceptors ?? []).map((around, index) =>
      PromiseInterceptor.make(`interceptor ${index} of consumer '${name}'`, endMillis(settings), around)
    ),
    transforms: transformsOf(options.transforms ?? {}),
    ...(enrich === undefined ? {} : { enrich }),
    ...(typeof naming === "object" ? { naming } : {}),
    ...(probe === undefined ? {} : { probe: PromiseCall.fromPromise((context) => probe(context)) }),
    ...(onDeadLetter === undefined
      ? {}
      : { onDeadLetter: (letter) => PromiseCall.fromPromise((context) => onDeadLetter(letter, context)) })
  }
}

/** The rules in their order, then the classifier. Undefined leaves the error to the exception lists. */
const classifierOf =
  (rules: ReadonlyArray<ErrorRule>, classifier?: Classifier.ExceptionClassifier): Classifier.ExceptionClassifier =>
  (failure, tier) => {
    for (const { routeOf } of rules) {
      const route = routeOf(failure.error)
      if (route !== undefined) return route
    }
    return classifier?.(failure, tier)
  }

const transformsOf = <K, V>(transforms: NonNullable<CommonOptions<K, V>["transforms"]>) =>
  Object.fromEntries(
    Object.entries(transforms).map(([name, transform]): [string, LetterTransform.LetterTransform<K, V>] => [
      name,
      (letter) =>
        Effect.catch(
          PromiseCall.fromPromise(() => transform(letter)),
          (error) => (error instanceof LetterTransform.Skip ? Effect.fail(error) : Effect.die(error))
        ) as Effect.Effect<LetterTransform.Transformed<K, V>, LetterTransform.Skip>
    ])
  )

/** Undefined for a consumer that remembers nothing. */
export const idempotencyOf = <K, V>({
  idempotency
}: Partial<CommonOptions<K, V>>): IdempotencyStore.Options<K, V> | undefined => {
  if (idempotency === undefined) return undefined
  const { lease, retention, ...rest } = idempotency
  return {
    ...rest,
    ...(lease === undefined ? {} : { lease: millisOf(lease) }),
    ...(retention === undefined ? {} : { retention: millisOf(retention) })
  }
}
