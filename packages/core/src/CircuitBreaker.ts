/**
 * Stops calling a dependency that fails, and finds out by itself when it is back (connector seed §4.5, rulings 26 to 29).
 *
 * A binding takes it as an option: it is paused then, instead of using up its records' retries. It can also be used alone:
 * `breaker.protect(effect)`.
 */
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as MutableRef from "effect/MutableRef"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { RecordPosition } from "./ConsumerRecord.ts"
import * as Defaults from "./Defaults.ts"
import { toMillis } from "./internal/base/durations.ts"
import * as BreakerState from "./internal/breaker/breakerState.ts"
import * as Listeners from "./internal/breaker/listeners.ts"
import * as OpenWait from "./internal/breaker/openWait.ts"
import type { Options } from "./internal/breaker/options.ts"
import * as Permits from "./internal/breaker/permits.ts"
import * as Protect from "./internal/breaker/protect.ts"
import * as Settings from "./internal/breaker/settings.ts"
import { type Change, countsBehind, countsOf, type Snapshot, snapshotOf } from "./internal/breaker/snapshot.ts"
import * as UserFunction from "./UserFunction.ts"

export type { Options } from "./internal/breaker/options.ts"
export type { Change, Snapshot } from "./internal/breaker/snapshot.ts"

/**
 * - `CLOSED`: everything passes. `OPEN`: nothing does, for a time. `HALF_OPEN`: a few calls find out how things are.
 * - `FORCED_OPEN`: nothing passes until somebody says so. `DISABLED`: everything does.
 */
export type State = "CLOSED" | "OPEN" | "HALF_OPEN" | "FORCED_OPEN" | "DISABLED"

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
  /**
   * Gives a permit back with the outcome of its call. `ignored` counts as nothing. Times are milliseconds. `record` is the record that the call was for, where
   * it was read first: while closed, the newest outcome of a record replaces a failure that the window has of it (ruling 72). Default: each call counts by itself.
   */
  readonly recordUnsafe: (
    permit: Permit,
    outcome: "success" | "failure" | "ignored",
    durationMillis: number,
    nowMillis: number,
    record?: RecordPosition
  ) => void
  /** How many calls may begin now: infinite while closed or disabled, 0 while open. */
  readonly freePermitsUnsafe: () => number
  /** The caller has nothing more to try: a half-open breaker judges the outcomes that it has, unless a call runs or there is no outcome. Changes no other state. */
  readonly judgeUnsafe: (nowMillis: number) => void
  /** Whether the window has a failure that an outcome with the same `record` would replace. */
  readonly remembersUnsafe: () => boolean
  /** The state now. */
  readonly stateUnsafe: () => State
  /** False once the breaker has opened since the permit was given. */
  readonly isCurrentUnsafe: (permit: Permit) => boolean
  /** Called synchronously with every change, in their order; one that throws changes nothing. The result removes it. */
  readonly onChange: (listener: (change: Change) => void) => () => void
}

/** A breaker that lives as long as the scope: one that is open when the scope is closed stays open. */
export const make = Effect.fnUntraced(function* <R = never>(
  options: Options<R> = {}
): Effect.fn.Return<CircuitBreaker, InvalidCircuitBreaker, R | Scope.Scope> {
  const issues = Settings.problems(options)
  if (issues.length > 0) return yield* new InvalidCircuitBreaker({ issues })
  const settings = Settings.ofState(options)
  const slowMillis = toMillis(options.slowCallDuration ?? Defaults.circuitBreaker.slowCallDurationMillis)
  const window = Settings.windowOf(options)
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
      UserFunction.runBounded(
        "the probe",
        UserFunction.callEffect("the probe", () => options.probe!),
        { timeout: toMillis(options.probeTimeout ?? Defaults.circuitBreaker.probeTimeoutMillis) }
      ),
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
