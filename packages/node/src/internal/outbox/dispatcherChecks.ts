/** The options of a dispatcher: checked before anything is reached, and then as the outbox takes them. */
import { EventBusError, Kinds, Ranges } from "@eventbus/core"
import { OutboxRanges } from "@eventbus/outbox"
import * as Effect from "effect/Effect"
import type { OutboxDispatcherOptions } from "../../OutboxDispatcherOptions.ts"
import type { DurationValue } from "../../PlainValues.ts"
import { millisOf } from "../millisOf.ts"

const { claims, relay, purge } = OutboxRanges

/** The allowed values, by the names of the options. The type asks for each of them. */
const kinds: { readonly [N in Exclude<keyof OutboxDispatcherOptions, "database">]-?: Kinds.Kind | Ranges.Range } = {
  table: Kinds.string,
  missingTopics: Kinds.oneOf(["wait", "create", "require"]),
  timestamp: Kinds.oneOf(["published", "occurred"]),
  migrate: Kinds.flag,
  onDone: Kinds.oneOf(["delete", "keep"]),
  purge: Kinds.struct({
    retention: purge.retention,
    batchSize: purge.batchSize,
    interval: purge.interval,
    batchTimeout: purge.batchTimeout
  }),
  interval: relay.interval,
  drainTimeout: relay.drainTimeout,
  lease: claims.lease,
  maxAttempts: relay.maxAttempts,
  cluster: Kinds.name,
  producer: Kinds.object
}

/** Fails with `ConfigurationValidation`, which lists all mistakes. */
export const check = (options: OutboxDispatcherOptions): Effect.Effect<void, EventBusError.ConfigurationValidation> =>
  Effect.suspend(() => {
    const isObject = typeof options === "object" && options !== null
    const names = isObject ? Object.keys(options) : []
    const known = ["database", ...Object.keys(kinds)]
    const issues = [
      ...Ranges.problemsOfAll(isObject ? plain(options) : options, kinds, "outbox."),
      ...names
        .filter((name) => !known.includes(name))
        .map((name) => ({ path: `outbox.${name}`, found: "an unknown option", allowed: `one of ${known.join(", ")}` }))
    ]
    return issues.length === 0 ? Effect.void : Effect.fail(new EventBusError.ConfigurationValidation({ issues }))
  })

/** Durations as milliseconds. A text that is none stays, and is refused as it was written. */
export const plain = (options: OutboxDispatcherOptions): WithMillis<OutboxDispatcherOptions> => {
  const { purge } = options
  const whole = withMillis(options, ["interval", "drainTimeout", "lease"])
  return purge === undefined ? whole : { ...whole, purge: withMillis(purge, ["retention", "interval", "batchTimeout"]) }
}

/** Settings whose durations are milliseconds. */
type WithMillis<S> = {
  readonly [N in keyof S]: N extends "purge" ? WithMillis<S[N]> : DurationValue extends S[N] ? number : S[N]
}

const withMillis = <S extends object>(section: S, names: ReadonlyArray<keyof S>): WithMillis<S> => {
  const millis = names.flatMap((name) => {
    const given = section[name]
    const found = typeof given === "string" ? millisOf(given) : Number.NaN
    return Number.isFinite(found) ? [[name, found] as const] : []
  })
  return { ...section, ...Object.fromEntries(millis) } as WithMillis<S>
}
