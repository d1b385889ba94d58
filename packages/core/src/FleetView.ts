/** The requests of operators to a fleet, and their view of it: holds, commands and their answers, processes. `Fleet` has the operations. */
import * as Schema from "effect/Schema"
import type { ContainerState } from "./EventBusError.ts"
import type { Time } from "./Time.ts"

/** Names a binding of the fleet, or one of its retry tiers. */
export interface HoldTarget {
  /** The name of the binding. */
  readonly binding: string
  /** The consumer group of the binding (Kafka: `group.id`). */
  readonly groupId: string
  /** The alias that the processes of the group give the cluster of the binding. Default `default`. */
  readonly cluster?: string
  /** The retry tier, from 1. Default: the whole binding. */
  readonly tier?: number
}

/** A hold to set: no process handles a record of its target, however many are started, until it is released. */
export interface HoldRequest extends HoldTarget {
  /** Why. Not empty; everybody who looks at the binding sees it. */
  readonly reason: string
  /** The one who holds, as text. Default: the name of this host. */
  readonly by?: string
  /** When the hold ends by itself, epoch milliseconds by the cluster's clock: a time after now. Default: it lasts until it is released. */
  readonly until?: number
}

/** The end of a hold. */
export interface ReleaseRequest extends HoldTarget {
  /** Why. Not empty; the view shows it until the next release of the same target. */
  readonly reason: string
  /** The one who releases, as text. Default: the name of this host. */
  readonly by?: string
}

/** A hold as the control topic has it. */
export interface Hold {
  /** The name of the binding. */
  readonly binding: string
  /** Its consumer group. */
  readonly groupId: string
  /** The alias of its cluster. */
  readonly cluster: string
  /** The retry tier, from 1; undefined when the whole binding is held. */
  readonly tier: number | undefined
  /** The one who holds. */
  readonly by: string
  /** Why. */
  readonly reason: string
  /** Since when, epoch milliseconds by the cluster's clock. */
  readonly sinceMillis: number
  /** When it ends by itself, epoch milliseconds by the cluster's clock; undefined when it lasts until it is released. */
  readonly untilMillis: number | undefined
  /**
   * Set where no operator holds, but the process itself, and no other one: `reading-control` until it has read the control topic, `control-unavailable` while it cannot read that
   * topic, under `onControlUnavailable: "hold"`. It ends with the condition, and no release lifts it.
   */
  readonly condition?: HoldCondition
}

/** Why a process holds a binding by itself. */
export type HoldCondition = "reading-control" | "control-unavailable"

/** The last release of a target, as the control topic has it. */
export interface Release {
  /** The name of the binding. */
  readonly binding: string
  /** Its consumer group. */
  readonly groupId: string
  /** The alias of its cluster. */
  readonly cluster: string
  /** The retry tier, from 1; undefined when the whole binding was held. */
  readonly tier: number | undefined
  /** The one who released. */
  readonly by: string
  /** Why. */
  readonly reason: string
  /** When, epoch milliseconds by the cluster's clock. */
  readonly atMillis: number
  /** The hold that it ended. */
  readonly held: Pick<Hold, "by" | "reason" | "sinceMillis">
}

/** The holds of one binding. */
export interface BindingHolds {
  /** The hold on the whole binding. */
  readonly binding: Hold | undefined
  /** Whether `binding` is no hold of an operator: the process has just started, reads the holds, and fetches nothing before it knows them. */
  readonly isReading: boolean
  /** The holds on its retry tiers, by their numbers, from 1. */
  readonly tiers: ReadonlyMap<number, Hold>
}

/** The verbs of commands. They do the same as the commands of `EventBusConnector`, in each process that it is for. */
export const verbs = ["pause", "resume", "stop", "start"] as const
/** One of `verbs`. */
export type Verb = (typeof verbs)[number]

/** The processes that a command is for: all, those of one host, or one by its id. `group`: all processes, and in them the bindings of the group only. */
export type CommandTarget =
  | "all"
  | {
      /** The consumer group. */
      readonly group: string
    }
  | {
      /** The name of the host. */
      readonly host: string
    }
  | {
      /** The id of the process. */
      readonly process: string
    }

/** A command to give. */
export interface CommandRequest {
  /** The verb. */
  readonly verb: Verb
  /** The name of the binding, or `{cluster}:{binding}`. Default: every binding that `target` leaves. */
  readonly binding?: string
  /** The retry tier, from 1. For `pause` and `resume` only. Default: the whole binding. */
  readonly tier?: number
  /** Default `all`. */
  readonly target?: CommandTarget
  /** Why. Not empty. */
  readonly reason: string
  /** The one who commands, as text. Default: the name of this host. */
  readonly by?: string
  /** Names the command, so that giving it again does nothing new: a UUID in small letters. Default: a new one. */
  readonly id?: string
  /** A process that reads the command later than this after it was appended answers `expired`, and does nothing. 1 ms to 7 days. Default 1 minute. */
  readonly expiresAfter?: Time
  /** How long to wait for the answers of all live processes. 0 to 2^31 - 1 ms. Default 10 seconds. */
  readonly wait?: Time
}

/**
 * How a process answers.
 *
 * - `accepted`: it has begun.
 * - `done`: it has done it, or it was so already.
 * - `refused`: it could not; `error` says why.
 * - `unsupported-version`: its version does not know the command.
 * - `expired`: it read the command too late, and did nothing.
 */
export const AckState = Schema.Literals(["accepted", "done", "refused", "unsupported-version", "expired"])
export type AckState = typeof AckState.Type

/** The answer of a process to a command. */
export interface Answer {
  /** The id of the process. */
  readonly process: string
  /** The name of its host. */
  readonly host: string
  /** The last that it has said. */
  readonly state: AckState
  /** The bindings that the command was for, in this process. */
  readonly bindings: number
  /** Why it was refused; undefined otherwise. */
  readonly error: string | undefined
}

/** A live process that has not answered to the end. */
export interface Missing {
  /** The id of the process. */
  readonly process: string
  /** The name of its host. */
  readonly host: string
  /** Its id in the operating system. */
  readonly pid: number
  /** Whether it has accepted the command, and is not done. */
  readonly accepted: boolean
}

/** The answers of processes. */
export interface ProcessAnswers {
  /** Final answers. A process that the command is not for has none. */
  readonly answers: ReadonlyArray<Answer>
  /** Live processes that the command is for, without a final answer. Empty: everybody has answered. */
  readonly missing: ReadonlyArray<Missing>
}

/** The outcome of a command. */
export interface CommandReport extends ProcessAnswers {
  /** The id of the command. */
  readonly id: string
}

/** A binding as its process last told. */
export interface FleetBinding {
  /** The name of the binding. */
  readonly name: string
  /** The alias of its cluster. */
  readonly cluster: string
  /** Its consumer group. */
  readonly groupId: string
  /** The state of its container. */
  readonly state: ContainerState
  /** The reasons that pause it. */
  readonly pausedBy: ReadonlyArray<string>
  /** How many partitions the process owns. */
  readonly partitions: number
  /** Offsets that are not finished, over these partitions, in decimal digits. Where there are none it is `0` and says nothing: the process does not know how far the group is. */
  readonly lag: string
  /** Records that have begun and are not finished. */
  readonly inFlight: number
  /** Partitions that stand: by a record, an unreadable batch or an open transaction, or without moving for a minute. At most 20 of a process. */
  readonly standing: ReadonlyArray<StandingPartition>
}

/** A partition that stands. */
export interface StandingPartition {
  /** The topic. */
  readonly topic: string
  /** The partition. */
  readonly partition: number
  /** The first offset that is not finished, in decimal digits. */
  readonly position: string
  /** Offsets that are not finished, in decimal digits. */
  readonly lag: string
  /** For how long it has not moved, in milliseconds. */
  readonly forMillis: number
  /** Why, in one word: `record`, `unreadable`, `transaction` or `waiting`. */
  readonly why: string
}

/** A process of the fleet. */
export interface FleetProcess {
  /** Made anew at each start. */
  readonly id: string
  /** The name of its host. Empty for a process whose heartbeat this version cannot read. */
  readonly host: string
  /** Its id in the operating system. */
  readonly pid: number
  /** The version of the application, as its settings say. Empty when they do not. */
  readonly version: string
  /** The version of the formats that it writes. */
  readonly protocol: number
  /** False when this version cannot read its heartbeats: nothing but its id is known. */
  readonly isReadable: boolean
  /** A hash of its bindings and their plain settings: processes of one deployment have the same. */
  readonly configHash: string
  /** `live`: its last heartbeat is at most 15 seconds old, by the cluster's clock. `stale`: it is older. After an hour it is gone. */
  readonly status: "live" | "stale"
  /** When the cluster appended its last heartbeat, epoch milliseconds. */
  readonly lastSeenMillis: number
  /** When it is stale unless it writes another one, epoch milliseconds by the cluster's clock. */
  readonly leaseEndsMillis: number
  /** How far its wall clock is ahead of the cluster's, in milliseconds; below 0: behind. */
  readonly skewMillis: number
  /** Whether its clock differs by more than 2 seconds. */
  readonly isSkewed: boolean
  /** Whether it knows the holds; when it does not, why. */
  readonly control: string
  /** Its bindings, those with standing partitions first. */
  readonly bindings: ReadonlyArray<FleetBinding>
  /** Bindings that its heartbeat had no room for. */
  readonly omitted: number
}

/** A fleet at one moment. */
export interface View {
  /** The processes, by host and id. */
  readonly processes: ReadonlyArray<FleetProcess>
  /** The holds in the control topic that have not ended. */
  readonly holds: ReadonlyArray<Hold>
  /** The last release of each target, the newest first. */
  readonly releases: ReadonlyArray<Release>
  /** Everything about both topics that is not as it should be. Empty when all is well. */
  readonly problems: ReadonlyArray<TopicProblem>
  /** The time of this view by the cluster's clock, epoch milliseconds. */
  readonly asOfMillis: number
}

/** A setting of a topic that does not fit, or a topic that is missing. */
export const TopicProblem = Schema.Struct({
  /** The topic. */
  topic: Schema.String,
  /** The setting of the topic, such as `cleanup.policy`; `topic` when it is missing. */
  setting: Schema.String,
  /** The value that was found. */
  found: Schema.String,
  /** The values that fit. */
  allowed: Schema.String
})
export type TopicProblem = typeof TopicProblem.Type

/** A topic of the fleet, or of the audit log, cannot be used as it is. Nothing was written. */
export class UnfitTopic extends Schema.TaggedError<UnfitTopic>()("UnfitTopic", {
  /** All that does not fit. */
  problems: Schema.Array(TopicProblem)
}) {
  override get message(): string {
    const each = this.problems.map(
      ({ topic, setting, found, allowed }) => `topic '${topic}': ${setting} is ${found}, allowed is ${allowed}`
    )
    return `Nothing was written: ${each.join("; ")}. Alter the topic, or delete it and have it created anew.`
  }
}
