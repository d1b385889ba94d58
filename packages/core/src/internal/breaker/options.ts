/**
 * The settings of a breaker as users write them.
 */
import type * as Effect from "effect/Effect"
import type { Time } from "../../Time.ts"

/** Settings of a breaker, with the seed's defaults (connector seed §4.1). `R` holds the services that the probe requires. */
export interface Options<out R = never> {
  /** A name for `CallNotPermitted`. Default: none. */
  readonly name?: string
  /** Calls, or with `slidingWindowType: "time"` seconds, that the rates are taken over. A whole number, 1 to 1 000 000. Default 100. */
  readonly slidingWindowSize?: number
  /** `count`: the last calls. `time`: the calls of the last seconds. Default `count`. */
  readonly slidingWindowType?: "count" | "time"
  /** No rate is judged before so many calls; with them it is, whatever the last one came to. 1 to 1 000 000, at most a count window's size. Default 10. */
  readonly minimumNumberOfCalls?: number
  /** Percent of failures at which it opens, inclusive. Above 0, at most 100. Default 50. */
  readonly failureRateThreshold?: number
  /** Percent of slow calls at which it opens, inclusive. Above 0, at most 100. Default 80. */
  readonly slowCallRateThreshold?: number
  /** A call that takes longer is slow; of a record, the whole delivery with its backoff (ruling 59). Default 5 seconds. */
  readonly slowCallDuration?: Time
  /** How long it stays open before it finds out. 1 ms or more, 2^53 - 1 ms at most. Default 1 minute. */
  readonly waitDurationInOpenState?: Time
  /**
   * Calls that find out: a hard cap, over everything that shares the breaker. The verdict falls with the last outcome; in a binding also when each record that could be
   * tried was tried once. 1 to 1 000 000. Default 5.
   */
  readonly permittedNumberOfCallsInHalfOpenState?: number
  /** Only for bindings. Default true: the binding shows PAUSED while it is open. With false, refused records wait in place without that. */
  readonly automaticPauseOnOpen?: boolean
  /**
   * Each reopening without a closing in between, and each failed probe, waits `multiplier` times longer, up to `maxWaitDuration`. A multiplier of 1 or more,
   * a limit of at least `waitDurationInOpenState`. Default: no.
   */
  readonly openBackoff?: {
    /** Factor from one wait to the next. A finite number, 1 or more. */
    readonly multiplier: number
    /** Longest wait. At least `waitDurationInOpenState`. */
    readonly maxWaitDuration: Time
  }
  /** Asked when the wait is over, before any call is: only when it succeeds, within `probeTimeout`, the breaker half-opens; else it waits again. */
  readonly probe?: Effect.Effect<unknown, unknown, R>
  /** 1 ms or more. Default 10 seconds. */
  readonly probeTimeout?: Time
  /**
   * Only for bindings. How long the only record that a half-open breaker can try may fail before it takes its route, to a retry tier or to the dead letter topic. 1 ms or
   * more. Default: never. As long as other records are there to try, it decides nothing (ruling 72).
   */
  readonly giveUpAfter?: Time
}
