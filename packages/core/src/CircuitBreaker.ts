/**
 * Stops calling a dependency that fails, and finds out by itself when it is back (connector seed §4.5, rulings 26 to 29).
 *
 * A binding takes it as an option: it is paused then, instead of using up its records' retries. It can also be used alone:
 * `breaker.protect(effect)`.
 */
import { type Cause, Clock, Duration, Effect, MutableRef, Option, Ref, Schema, type Scope, type Stream } from "effect"
import type { ConfigurationIssue } from "./EventBusError.ts"
import { awaitAtMost } from "./internal/base/awaitAtMost.ts"
import * as BreakerState from "./internal/breaker/breakerState.ts"
import * as CallWindow from "./internal/breaker/callWindow.ts"
import * as Listeners from "./internal/breaker/listeners.ts"
import * as OpenWait from "./internal/breaker/openWait.ts"
import * as Permits from "./internal/breaker/permits.ts"
import * as Protect from "./internal/breaker/protect.ts"
import { type Change, countsBehind, countsOf, type Snapshot, snapshotOf } from "./internal/breaker/snapshot.ts"

export type { Change, Snapshot } from "./internal/breaker/snapshot.ts"

/**
 * - `CLOSED`: everything passes. `OPEN`: nothing does, for a time. `HALF_OPEN`: a few calls find out how things are.
 * - `FORCED_OPEN`: nothing passes until somebody says so. `DISABLED`: everything does.
 */
export type State = "CLOSED" | "OPEN" | "HALF_OPEN" | "FORCED_OPEN" | "DISABLED"

/** With the seed's defaults (CircuitBreakerProperties). `R` is what the probe requires. */
export interface Options<out R = never> {
  /** Said by `CallNotPermitted`. Default: none. */
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
  readonly slowCallDuration?: Duration.Input
  /** How long it stays open before it finds out. 1 ms or more, 2^53 - 1 ms at most. Default 1 minute. */
  readonly waitDurationInOpenState?: Duration.Input
  /** Calls that find out: a hard cap, over everything that shares the breaker. The verdict falls with the last outcome. 1 to 1 000 000. Default 5. */
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
    readonly maxWaitDuration: Duration.Input
  }
  /** Asked when the wait is over, before any call is: only when it succeeds, within `probeTimeout`, the breaker half-opens; else it waits again. */
  readonly probe?: Effect.Effect<unknown, unknown, R>
  /** 1 ms or more. Default 10 seconds. */
  readonly probeTimeout?: Duration.Input
}

/** Settings outside of what is allowed; all of them at once. */
export class InvalidCircuitBreaker extends Schema.TaggedError<InvalidCircuitBreaker>()("InvalidCircuitBreaker", {
  /** Every setting that is not allowed. */
  issues: Schema.Array(
    Schema.Struct({
      /** The setting, such as `openBackoff.multiplier`. */
      path: Schema.String,
      /** The value that was given, as text. */
      found: Schema.String,
      /** The values that are allowed. */
      allowed: Schema.String
    })
  )
}) {
  override get message(): string {
    return this.issues.map(({ path, found, allowed }) => `${path} is ${found}; allowed: ${allowed}`).join("\n")
  }
}

/** The breaker let no call through; nothing was called. */
export class CallNotPermitted extends Schema.TaggedError<CallNotPermitted>()("CallNotPermitted", {
  /** The `name` of the breaker's options. */
  name: Schema.optionalKey(Schema.String),
  /** The state that let no call through. */
  state: Schema.Literals(["CLOSED", "OPEN", "HALF_OPEN", "FORCED_OPEN", "DISABLED"]),
  /** Until the next look at the dependency, 0 while a probe looks; undefined when that is up to somebody. */
  retryInMillis: Schema.UndefinedOr(Schema.Number)
}) {
  override get message(): string {
    return `The circuit breaker${this.name === undefined ? "" : ` '${this.name}'`} is ${this.state} and lets no call through.`
  }
}

/** A call's right to begin: the generation of the state that gave it. */
export type Permit = number

/** How `protect` counts a call. */
export interface ProtectOptions<E> {
  /** Which failed calls count against the dependency. Default: all, also when it throws. An interrupted call counts as nothing. */
  readonly isFailure?: (cause: Cause.Cause<E>) => boolean
}

/** A circuit breaker. Everything that shares it shares its state. */
export interface CircuitBreaker {
  /** Runs a call, or fails with `CallNotPermitted`. */
  readonly protect: <A, E, R>(
    call: Effect.Effect<A, E, R>,
    options?: ProtectOptions<E>
  ) => Effect.Effect<A, E | CallNotPermitted, R>
  /** The state now. */
  readonly state: Effect.Effect<State>
  /** The state now, with its figures. */
  readonly snapshot: Effect.Effect<Snapshot>
  /** The changes from now on. A reader that falls 256 changes behind misses the oldest. */
  readonly changes: Stream.Stream<Change>
  /** Lets nothing through until `reset`. */
  readonly forceOpen: Effect.Effect<void>
  /** Lets everything through, and counts nothing, until `reset`. */
  readonly disable: Effect.Effect<void>
  /** Closed, with an empty window, from every state. Calls that run now no longer count. */
  readonly reset: Effect.Effect<void>
  /** For callers that cannot afford an effect per call. Every permit is given back once: by `recordUnsafe` or `releaseUnsafe`; of a state that is over, that changes nothing. */
  readonly tryAcquireUnsafe: (nowMillis: number) => Permit | undefined
  /** Gives a permit back without an outcome, such as of an interrupted call. */
  readonly releaseUnsafe: (permit: Permit) => void
  /** Gives a permit back with the outcome of its call. `ignored` counts as nothing. Times are milliseconds. */
  readonly recordUnsafe: (
    permit: Permit,
    outcome: "success" | "failure" | "ignored",
    durationMillis: number,
    nowMillis: number
  ) => void
  /** The state now. */
  readonly stateUnsafe: () => State
  /** False once the breaker has opened since the permit was given. */
  readonly isCurrentUnsafe: (permit: Permit) => boolean
  /** Called synchronously with every change, in their order; one that throws changes nothing. The result removes it. */
  readonly onChange: (listener: (change: Change) => void) => () => void
}

/** Everything that is wrong with the settings. */
export const validate = (options: Options<unknown>): ReadonlyArray<ConfigurationIssue> => {
  const size = options.slidingWindowSize ?? 100
  const minimum = options.minimumNumberOfCalls ?? 10
  const wait = options.waitDurationInOpenState ?? "1 minute"
  const waitMillis = toMillis(wait)
  const backoff = options.openBackoff
  return [
    ...whole("slidingWindowSize", size),
    ...(["count", "time"].includes(options.slidingWindowType ?? "count")
      ? []
      : [issue("slidingWindowType", options.slidingWindowType, '"count" or "time"')]),
    ...whole("minimumNumberOfCalls", minimum),
    ...(options.slidingWindowType !== "time" && minimum > size
      ? [issue("minimumNumberOfCalls", minimum, `at most slidingWindowSize (${size})`)]
      : []),
    ...percent("failureRateThreshold", options.failureRateThreshold ?? 50),
    ...percent("slowCallRateThreshold", options.slowCallRateThreshold ?? 80),
    ...duration("slowCallDuration", options.slowCallDuration ?? "5 seconds", 0),
    ...duration("waitDurationInOpenState", wait, 1),
    ...whole("permittedNumberOfCallsInHalfOpenState", options.permittedNumberOfCallsInHalfOpenState ?? 5),
    ...(backoff === undefined
      ? []
      : [
          ...(Number.isFinite(backoff.multiplier) && backoff.multiplier >= 1
            ? []
            : [issue("openBackoff.multiplier", backoff.multiplier, "a finite number, 1 or more")]),
          ...duration(
            "openBackoff.maxWaitDuration",
            backoff.maxWaitDuration,
            waitMillis >= 1 && waitMillis < Infinity ? waitMillis : 1
          )
        ]),
    ...duration("probeTimeout", options.probeTimeout ?? "10 seconds", 1)
  ]
}

const issue = (path: string, found: unknown, allowed: string): ConfigurationIssue => ({
  path,
  found: Duration.isDuration(found) ? `${Duration.toMillis(found)} ms` : String(found),
  allowed
})

const whole = (path: string, value: number) =>
  Number.isSafeInteger(value) && value >= 1 && value <= 1_000_000
    ? []
    : [issue(path, value, "a whole number from 1 to 1 000 000")]

const percent = (path: string, value: number) =>
  value > 0 && value <= 100 ? [] : [issue(path, value, "a percentage above 0, at most 100")]

const duration = (path: string, input: Duration.Input, leastMillis: number) => {
  const millis = toMillis(input)
  return millis >= leastMillis && millis <= Number.MAX_SAFE_INTEGER
    ? []
    : [issue(path, input, `a duration of ${leastMillis} ms or more, 2^53 - 1 ms at most`)]
}

const toMillis = (input: Duration.Input): number =>
  Number.isNaN(input)
    ? Number.NaN
    : Option.match(Duration.fromInput(input), { onNone: () => Number.NaN, onSome: Duration.toMillis })

/** A breaker that lives as long as the scope: one that is open when the scope is closed stays open. */
export const make = Effect.fnUntraced(function* <R = never>(
  options: Options<R> = {}
): Effect.fn.Return<CircuitBreaker, InvalidCircuitBreaker, R | Scope.Scope> {
  const issues = validate(options)
  if (issues.length > 0) return yield* new InvalidCircuitBreaker({ issues })
  const settings = settingsOf(options)
  const slowMillis = toMillis(options.slowCallDuration ?? "5 seconds")
  const window = windowOf(options)
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const { add: onChange, notify } = Listeners.make<Change>()
  const stateRef = Ref.makeUnsafe(BreakerState.initial(now()))
  const current = () => Ref.getUnsafe(stateRef)
  let lastOpened = -1

  const apply = (event: BreakerState.BreakerEvent, nowMillis: number): void => {
    const from = current()
    const state = BreakerState.transition(settings, from, event, nowMillis)
    MutableRef.set(stateRef.ref, state)
    if (state.generation === from.generation) return
    const snapshot = snapshotOf(state, countsBehind(from, event, window, nowMillis))
    window.clear()
    wait.stop()
    if (state._tag === "OPEN" || state._tag === "FORCED_OPEN") lastOpened = state.generation
    if (state._tag === "OPEN") wait.start()
    if (state._tag !== from._tag) notify({ from: from._tag, to: state._tag, snapshot })
  }

  const wait = yield* OpenWait.make<R>({
    untilMillis: () => {
      const state = current()
      return state._tag === "OPEN" ? state.untilMillis : undefined
    },
    // One that cannot be interrupted does not keep the breaker open for ever.
    probe:
      options.probe &&
      Effect.flatMap(awaitAtMost(options.probe, options.probeTimeout ?? "10 seconds"), Effect.fromOption),
    onOver: () => apply({ _tag: "WaitOver" }, now()),
    onProbeFailed: () => apply({ _tag: "ProbeFailed" }, now())
  })

  const calls = Permits.make(settings, slowMillis, window, current, apply)
  const command = (event: BreakerState.BreakerEvent) => Effect.sync(() => apply(event, now()))
  return {
    protect: Protect.make(calls, now, () => refusal(current(), options.name, now())),
    state: Effect.map(Ref.get(stateRef), ({ _tag }) => _tag),
    snapshot: Effect.map(Ref.get(stateRef), (state) => snapshotOf(state, countsOf(state, window, now()))),
    changes: Listeners.stream(onChange),
    forceOpen: command({ _tag: "ForceOpen" }),
    disable: command({ _tag: "Disable" }),
    reset: command({ _tag: "Close" }),
    ...calls,
    stateUnsafe: () => current()._tag,
    isCurrentUnsafe: (permit) => permit > lastOpened,
    onChange
  }
})

const refusal = (state: BreakerState.BreakerState, name: string | undefined, nowMillis: number): CallNotPermitted =>
  new CallNotPermitted({
    ...(name === undefined ? {} : { name }),
    state: state._tag,
    retryInMillis: state._tag === "OPEN" ? Math.max(0, state.untilMillis - nowMillis) : undefined
  })

const windowOf = ({ slidingWindowSize: size = 100, slidingWindowType }: Options<unknown>): CallWindow.CallWindow =>
  slidingWindowType === "time" ? CallWindow.ofSeconds(size) : CallWindow.ofCalls(size)

const settingsOf = (options: Options<unknown>): BreakerState.BreakerSettings => {
  const waitMillis = toMillis(options.waitDurationInOpenState ?? "1 minute")
  return {
    minimumNumberOfCalls: options.minimumNumberOfCalls ?? 10,
    failureRateThreshold: options.failureRateThreshold ?? 50,
    slowCallRateThreshold: options.slowCallRateThreshold ?? 80,
    permittedNumberOfCallsInHalfOpenState: options.permittedNumberOfCallsInHalfOpenState ?? 5,
    waitMillis,
    waitMultiplier: options.openBackoff?.multiplier ?? 1,
    maxWaitMillis: options.openBackoff === undefined ? waitMillis : toMillis(options.openBackoff.maxWaitDuration)
  }
}
