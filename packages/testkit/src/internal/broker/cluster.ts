/**
 * One in-memory cluster: kernel, network, faults, groups and transaction coordinator. It applies cluster effects.
 */
import { BrokerError, ConsumerRecord } from "@eventbus/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as FaultPlan from "../../FaultPlan.ts"
import { ConsumerGroup } from "./consumerGroup.ts"
import { FaultRuntime } from "./faultRuntime.ts"
import { type Journal, type Kernel, make as makeKernel, type Settings } from "./kernel.ts"
import { type Connection, Network } from "./network.ts"
import { nameProblem } from "./topicRegistry.ts"
import { TransactionCoordinator } from "./transactionCoordinator.ts"

interface ClusterOptions {
  readonly settings: Settings
  readonly plan: FaultPlan.FaultPlan
  readonly onEvent: Journal | undefined
}

export class Cluster {
  readonly kernel: Kernel
  readonly faults: FaultRuntime
  readonly network: Network
  readonly groups = new Map<string, ConsumerGroup>()
  readonly transactions: TransactionCoordinator
  private nextProducerId = 1
  private clients = 0

  constructor(kernel: Kernel) {
    this.kernel = kernel
    this.faults = new FaultRuntime(kernel.random, (effect) => this.applyEffect(effect))
    this.network = new Network(kernel, this.faults)
    this.transactions = new TransactionCoordinator(kernel, (groupId) => this.group(groupId))
    kernel.topics.listeners.add((topic) => {
      for (const group of this.groups.values()) {
        if ([...group.members.values()].some((member) => member.topics.has(topic))) group.rebalance()
      }
    })
  }

  /** The coordinator of a group. The first call creates the group. */
  group(groupId: string): ConsumerGroup {
    const known = this.groups.get(groupId)
    if (known) return known
    const group = new ConsumerGroup(groupId, this.kernel, { isUnreachable: () => this.network.coordinatorAway })
    this.groups.set(groupId, group)
    return group
  }

  /** The reason why a topic cannot be written to, if any. Creates the topic where `autoCreateTopics` is on. */
  topicProblem(topic: string): BrokerError.InvalidTopic | BrokerError.UnknownTopic | undefined {
    const { topics, settings } = this.kernel
    const detail = nameProblem(topic)
    if (detail !== undefined) return new BrokerError.InvalidTopic({ topic, detail })
    if (topics.get(topic)) return undefined
    if (settings.autoCreateTopics === "off") return new BrokerError.UnknownTopic({ topic })
    topics.create(topic, {
      partitions: settings.defaultPartitions,
      replicationFactor: 1,
      config: new Map(),
      firstOffset: 0n
    })
    return undefined
  }

  producerId(): number {
    return this.nextProducerId++
  }

  clientId(given: string | undefined): string {
    return given ?? `memory-${++this.clients}`
  }

  add(fault: FaultPlan.Fault): void {
    if (fault._tag === "OnRequest") this.faults.add(fault)
    else this.kernel.after(Duration.toMillis(fault.after), () => this.applyEffect(fault.effect))
  }

  applyEffect(effect: FaultPlan.ClusterEffect): void {
    this.kernel.journal({ _tag: "FaultInjected", effect: effect._tag })
    switch (effect._tag) {
      case "BrokerDown":
        this.network.takeDown(effect.duration)
        break
      case "CoordinatorMoved":
        this.network.moveCoordinator(effect.duration)
        break
      case "SessionExpired":
        this.expireOne(effect.groupId, effect.clientId)
        break
      case "PartitionLost":
        this.loseOne(effect.topic, effect.partition)
        break
      case "ConnectionDropped":
        this.pickConnection(effect.clientId, "consumer")?.onChange("dropped")
        break
      case "Isolated": {
        const connection = this.pickConnection(effect.clientId)
        if (connection) this.network.isolate(connection, effect.duration)
        break
      }
      case "Kill":
        for (const connection of this.network.connections) {
          if (connection.clientId === effect.clientId) connection.cut = true
        }
    }
  }

  private pickConnection(clientId: string | undefined, kind?: Connection["kind"]): Connection | undefined {
    return this.kernel.random.pick(
      [...this.network.connections].filter(
        (connection) =>
          !connection.cut &&
          (clientId === undefined || connection.clientId === clientId) &&
          (kind === undefined || connection.kind === kind)
      )
    )
  }

  private expireOne(groupId: string | undefined, clientId: string | undefined): void {
    const members = [...this.groups.values()]
      .filter((group) => groupId === undefined || group.groupId === groupId)
      .flatMap((group) => [...group.members.values()].map((member) => ({ group, member })))
      .filter(({ member }) => clientId === undefined || member.clientId === clientId)
    const chosen = this.kernel.random.pick(members)
    chosen?.group.expire(chosen.member)
  }

  private loseOne(topic: string | undefined, partition: number | undefined): void {
    const held = [...this.groups.values()]
      .flatMap((group) =>
        [...group.members.values()].flatMap((member) =>
          [...member.owned.values()].map((ownedPartition) => ({ group, holding: ownedPartition }))
        )
      )
      .filter(
        ({ holding }) =>
          (topic === undefined || holding.topic === topic) &&
          (partition === undefined || holding.partition === partition)
      )
    const chosen = this.kernel.random.pick(held)
    if (chosen) chosen.group.lose(ConsumerRecord.partitionKey(chosen.holding.topic, chosen.holding.partition))
  }
}

export const make = Effect.fnUntraced(function* (
  options: ClusterOptions
): Effect.fn.Return<Cluster, never, Scope.Scope> {
  const cluster = new Cluster(yield* makeKernel(options.settings, options.plan.seed, options.onEvent))
  for (const fault of options.plan.faults) cluster.add(fault)
  return cluster
})

/** The failure of every client whose connection is dropped. */
export const connectionDropped = new BrokerError.BrokerUnavailable({
  brokers: ["memory"],
  detail: "the connection was dropped"
})
