/**
 * How a Kafka cluster is: it is asked to describe itself, for 10 seconds at most.
 */
import type { Admin, ClusterNode } from "@eventbus/core/Broker"
import { Broker } from "@eventbus/core/Broker"
import * as BrokerError from "@eventbus/core/BrokerError"
import * as Failures from "@eventbus/core/Failures"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { BrokerHealth } from "./BrokerHealth.ts"

/** A cluster that answered, or the reason why there is no answer. */
export type KafkaHealth = Up | Down

/** A cluster that answered and names at least one broker. */
export interface Up {
  /** The cluster answered. */
  readonly status: "UP"
  /** The id that the cluster got when it was formatted. */
  readonly clusterId: string
  /** How many brokers run. */
  readonly brokersAvailable: number
  /** The brokers, as `host:port (id=n)`, with commas between them. */
  readonly brokers: string
  /** Id of the controller; absent while the cluster names none. */
  readonly controllerId?: number
  /** Address of the controller, `host:port`; absent while the cluster names none. */
  readonly controllerHost?: string
}

/** A cluster that did not answer. */
export interface Down {
  /** There is no answer, or no broker. */
  readonly status: "DOWN"
  /** Why. */
  readonly error: string
  /** The class of the error. */
  readonly errorType: string
}

const limitMillis = 10_000

/** Asks the cluster of the `Broker` in the context. Never fails. */
export const checkHealth: Effect.Effect<KafkaHealth, never, Broker> = Effect.flatMap(Broker, ({ admin }) =>
  check(Effect.scoped(Effect.flatMap(admin, ({ describeCluster }) => describeCluster)))
)

/** Whether at least one broker is available. */
export const isHealthy = (health: KafkaHealth): boolean => health.status === "UP" && health.brokersAvailable > 0

/** The same answer in the words that all brokers share. */
export const asBrokerHealth = (health: KafkaHealth): BrokerHealth => {
  if (health.status === "DOWN") return { ...health, details: {} }
  const { status, ...details } = health
  return { status, details }
}

const check = (describe: Admin["describeCluster"]): Effect.Effect<KafkaHealth> =>
  describe.pipe(
    Effect.timeoutOrElse({ duration: limitMillis, orElse: () => Effect.fail(noAnswer) }),
    Effect.map(({ clusterId, brokers, controller }): KafkaHealth => {
      if (brokers.length === 0) return down(new Error("the cluster names no broker"))
      const listed = brokers.map((node) => `${addressOf(node)} (id=${node.id})`).join(",")
      return {
        ...{ status: "UP", clusterId, brokersAvailable: brokers.length, brokers: listed },
        ...(controller !== undefined && { controllerId: controller.id, controllerHost: addressOf(controller) })
      }
    }),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.succeed(down(Cause.squash(cause)))
    )
  )

const noAnswer = new BrokerError.RequestTimedOut({ operation: "describe cluster", millis: limitMillis })

const down = (error: unknown): Down => {
  const { message, className } = Failures.fromUnknown(error)
  return { status: "DOWN", error: message, errorType: className }
}

const addressOf = ({ host, port }: ClusterNode): string => `${host}:${port}`
