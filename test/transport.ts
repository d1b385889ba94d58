/**
 * The transport and the protocol of groups that tests on a real Kafka run on. `TRANSPORT`: kafkajs, or `kafka` for connections of our own. `GROUP_PROTOCOL`: classic, or
 * `consumer` (KIP-848). The processes that a test starts take the same ones.
 */
import type { Broker } from "@eventbus/core"
import { Kafka } from "@eventbus/kafka"
import { KafkaJs } from "@eventbus/kafkajs"
import type { Duration } from "effect"

const transports = { kafkajs: KafkaJs, kafka: Kafka } as const

const { TRANSPORT: given = "kafkajs", GROUP_PROTOCOL: protocol = "classic" } = process.env

if (given !== "kafkajs" && given !== "kafka") throw new Error(`TRANSPORT is '${given}'; kafkajs or kafka is expected`)
if (protocol !== "classic" && protocol !== "consumer")
  throw new Error(`GROUP_PROTOCOL is '${protocol}'; classic or consumer is expected`)

/** As options and configurations call it. */
export const name = given

export const groupProtocol: Broker.GroupProtocol = protocol

export const { layer, make } = transports[name]

interface Times {
  readonly sessionTimeout?: Duration.Input
  readonly heartbeatInterval?: Duration.Input
}

/** The settings of a binding in that protocol. The consumer protocol refuses times: the group has them, and on the runner's brokers they are 6 s and 1 s. */
export const membership = <S extends Times>({ sessionTimeout, heartbeatInterval, ...others }: S) => ({
  ...others,
  groupProtocol,
  ...(groupProtocol === "classic" && sessionTimeout !== undefined && { sessionTimeout }),
  ...(groupProtocol === "classic" && heartbeatInterval !== undefined && { heartbeatInterval })
})
