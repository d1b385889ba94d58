/**
 * The topics of one cluster and their partitions. It notifies its listeners of every change.
 */
import { BrokerError } from "@eventbus/core"
import { PartitionLog } from "./partitionLog.ts"

export interface Topic {
  readonly name: string
  /** Unique in the cluster: a topic that is made again has another one. */
  readonly id: string
  readonly partitions: Array<PartitionLog>
  readonly replicationFactor: number
  /** Only what was set; `topicDefaults` holds the rest. */
  readonly config: Map<string, string>
}

interface TopicSettings {
  readonly partitions: number
  readonly replicationFactor: number
  readonly config: ReadonlyMap<string, string>
  readonly firstOffset: bigint
}

/** The problem with a topic name; undefined for a legal name. */
export const nameProblem = (name: string): string | undefined => {
  if (name.length === 0) return "it is empty"
  if (name.length > 249) return `it has ${name.length} characters`
  if (name === "." || name === "..") return "it is reserved"
  if (!/^[a-zA-Z0-9._-]+$/.test(name)) return "it contains an illegal character"
  return undefined
}

export class TopicRegistry {
  private readonly topics = new Map<string, Topic>()
  /** Called with a topic when its partitions appear, grow or disappear. */
  readonly listeners = new Set<(topic: string) => void>()
  private readonly defaults: ReadonlyMap<string, string>
  private made = 0

  constructor(defaults: ReadonlyMap<string, string>) {
    this.defaults = defaults
  }

  names(): ReadonlyArray<string> {
    return [...this.topics.keys()].sort()
  }

  get(name: string): Topic | undefined {
    return this.topics.get(name)
  }

  log(topic: string, partition: number): PartitionLog | undefined {
    return this.topics.get(topic)?.partitions[partition]
  }

  partitionCount(topic: string): number {
    return this.topics.get(topic)?.partitions.length ?? 0
  }

  create(name: string, settings: TopicSettings): BrokerError.InvalidTopic | BrokerError.TopicExists | undefined {
    const detail = nameProblem(name)
    if (detail !== undefined) return new BrokerError.InvalidTopic({ topic: name, detail })
    if (this.topics.has(name)) return new BrokerError.TopicExists({ topic: name })
    const topic: Topic = {
      name,
      id: `topic-${++this.made}`,
      partitions: [],
      replicationFactor: settings.replicationFactor,
      config: new Map(settings.config)
    }
    this.topics.set(name, topic)
    this.grow(topic, settings.partitions, settings.firstOffset)
    return undefined
  }

  grow(topic: Topic, total: number, firstOffset = 0n): void {
    for (let partition = topic.partitions.length; partition < total; partition++) {
      topic.partitions.push(new PartitionLog(topic.name, partition, firstOffset))
    }
    this.changed(topic.name)
  }

  remove(name: string): boolean {
    if (!this.topics.delete(name)) return false
    this.changed(name)
    return true
  }

  /** A topic's configuration, completed by the cluster's defaults. */
  config(topic: Topic): ReadonlyMap<string, string> {
    return new Map([...this.defaults, ...topic.config])
  }

  setting(topic: Topic, key: string): string | undefined {
    return topic.config.get(key) ?? this.defaults.get(key)
  }

  private changed(name: string): void {
    for (const listener of this.listeners) listener(name)
  }
}
