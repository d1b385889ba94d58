/** The settings among a consumer's options: what a configuration file could say as well. The code is `handlerCode`'s. */
import type { CommonOptions, DeadLetterOptions, RetryOptions } from "../ConsumerOptions.ts"

/** Names of the options that hold code, or that a file says in another way. */
const code = new Set([
  ...["key", "value", "handler", "handleBatch", "onError", "classifier", "interceptors", "enrich", "transforms"],
  ...["idempotency", "rehearsable", "naming", "deadLetter", "circuitBreaker", "retry"]
])

/** The settings as plain data. An option that there is none of stays, so that the configuration refuses it by its name. */
export const of = <K, V>(options: Partial<CommonOptions<K, V>>): { readonly [key: string]: unknown } => {
  const { naming, deadLetter, circuitBreaker, retry } = options
  return {
    ...Object.fromEntries(Object.entries(options).filter(([name]) => !code.has(name))),
    ...(typeof naming === "object" ? {} : { naming }),
    ...(retry === undefined ? {} : { retry: retryOf(retry) }),
    ...(deadLetter === undefined ? {} : { deadLetter: deadLetterOf(deadLetter) }),
    ...(circuitBreaker === undefined
      ? {}
      : { circuitBreaker: { enabled: true, ...without(circuitBreaker, ["probe"]) } })
  }
}

/** An expression becomes the text that a file has for it. */
const retryOf = ({ retryableExceptions, nonRetryableExceptions, ...rest }: RetryOptions) => ({
  ...rest,
  retryableExceptions: retryableExceptions?.map(String),
  nonRetryableExceptions: nonRetryableExceptions?.map(String)
})

/** A function that nobody would call is no default. */
const deadLetterOf = (deadLetter: DeadLetterOptions) => ({
  ...(deadLetter.onDeadLetter === undefined ? {} : { strategy: "ALERT_AND_STORE" }),
  ...without(deadLetter, ["onDeadLetter", "topicFor", "fingerprint"])
})

const without = (section: object, names: ReadonlyArray<string>): { readonly [key: string]: unknown } =>
  Object.fromEntries(Object.entries(section).filter(([name]) => !names.includes(name)))
