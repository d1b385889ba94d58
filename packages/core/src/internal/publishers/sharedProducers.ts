/** One producer for each cluster, which all publishers of a program share. It connects with the first record, and closes with the scope. */
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import type { Admin, Broker, Producer, ProducerOptions } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as Ranges from "../../Ranges.ts"
import * as Tracing from "../../Tracing.ts"
import * as SingleFlight from "../base/singleFlight.ts"

/** A cluster, as publishers see it. */
export interface Cluster {
  /** The traced producer. Connects when there is none yet. */
  readonly producer: Effect.Effect<Producer, BrokerError>
  /** How many partitions a topic has. Remembered for a minute. */
  readonly partitions: (topic: string) => Effect.Effect<number, BrokerError>
}

/** How long a partition count holds. */
const rememberMillis = 60_000

/** The delivery timeout of a producer that is given none, as in `ProducerOptions`. */
const defaultDeliveryMillis = 120_000

/** Pauses between attempts to reach a cluster: 100 ms, doubling up to a second. */
const pauses = Schedule.min([Schedule.exponential("100 millis", 2), Schedule.spaced("1 second")])

/** `context` is that of the program: the producer outlives the caller that it is made for, whose spans and log annotations are of no other record. */
export const make = (
  broker: Broker["Service"],
  options: ProducerOptions,
  scope: Scope.Scope,
  context: Context.Context<never>
): Cluster => {
  const patienceMillis = Ranges.millisOf(options.deliveryTimeout ?? defaultDeliveryMillis)
  const patiently = <A>(effect: Effect.Effect<A, BrokerError>) =>
    Effect.updateContext(retried(patienceMillis, effect), (_: Context.Context<never>) => context)
  let open: Producer | undefined

  const connect = SingleFlight.make(
    Effect.map(patiently(inOwnScope(scope, broker.producer(options))), (producer) => {
      open = Tracing.producer(producer)
      return open
    }),
    scope
  )
  return {
    producer: Effect.suspend(() => (open === undefined ? connect : Effect.succeed(open))),
    partitions: partitionCounts((use) => patiently(Effect.scoped(Effect.flatMap(broker.admin, use))), scope)
  }
}

/** Repeats what a cluster that is away refuses, for as long as a record may wait for its acknowledgement. A topic that is missing is reported at once. */
const retried = <A>(patienceMillis: number, effect: Effect.Effect<A, BrokerError>): Effect.Effect<A, BrokerError> =>
  Effect.flatMap(Clock.Clock, (clock) => {
    const endMillis = clock.currentTimeMillisUnsafe() + patienceMillis
    return Effect.retry(effect, {
      schedule: pauses,
      while: (error) => error.retryable && error._tag !== "UnknownTopic" && clock.currentTimeMillisUnsafe() < endMillis
    })
  })

/** An attempt that fails releases what it acquired at once, and not with the program. */
const inOwnScope = <A>(
  scope: Scope.Scope,
  effect: Effect.Effect<A, BrokerError, Scope.Scope>
): Effect.Effect<A, BrokerError> =>
  Effect.flatMap(Scope.fork(scope), (own) =>
    Effect.onError(Scope.provide(effect, own), (cause) => Scope.close(own, Exit.failCause(cause)))
  )

interface Count {
  readonly partitions: number
  readonly atMillis: number
}

const partitionCounts = (
  withAdmin: <A>(use: (admin: Admin) => Effect.Effect<A, BrokerError>) => Effect.Effect<A, BrokerError>,
  scope: Scope.Scope
): Cluster["partitions"] => {
  const counts = new Map<string, Count>()
  const ask = SingleFlight.perKey(
    (topic) =>
      Effect.map(
        withAdmin((admin) => Effect.all([admin.describeTopic(topic), Clock.currentTimeMillis])),
        ([{ partitions }, atMillis]) => {
          counts.set(topic, { partitions, atMillis })
          return partitions
        }
      ),
    scope
  )
  return (topic) =>
    Effect.flatMap(Clock.currentTimeMillis, (nowMillis) => {
      const known = counts.get(topic)
      return known !== undefined && Math.abs(nowMillis - known.atMillis) < rememberMillis
        ? Effect.succeed(known.partitions)
        : ask(topic)
    })
}
