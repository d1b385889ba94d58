/**
 * The dead letters of each group that are not dealt with, by what the logs and the operators' commands say. Where that is not certain, such as after a command without an
 * answer, it knows the least and the most.
 */
import { deadLetterTopics } from "../scenario/retries.ts"
import type { BindingPlan, Scenario } from "../scenario/Scenario.ts"
import * as Copies from "./copies.ts"
import type { LogState } from "./figures.ts"
import type { Entry } from "./History.ts"

interface Letter {
  readonly partition: string
  readonly offset: bigint
  readonly id: string
  readonly replays: number
}

/** The dead letters of a group, and the results of commands and handlers. */
interface Letters {
  readonly stored: Array<Letter>
  /** Copies that replays have published, by record and number of replays before. */
  readonly replayed: Map<string, number>
  /** Letters that operators gave up, by place. The value is false when a command had no certain answer. */
  readonly discarded: Map<string, boolean>
  /** Letters that the strategy's handler was called for, by place. */
  readonly handled: Set<string>
}

export interface Bounds {
  readonly least: number
  readonly most: number
}

const nameOf = (id: string, replays: number): string => `${id} ${replays}`

const placeOf = (partition: string, offset: bigint | string): string => `${partition}@${offset}`

/** The custom handler of a dead letter strategy fails for every third record. */
export const failsFor = (id: string): boolean => Number(/\d+$/.exec(id)?.[0] ?? 0) % 3 === 0

export class LetterBook {
  private readonly groups = new Map<string, Letters>()
  private readonly touched = new Map<string, number>()
  private readonly plans: ReadonlyArray<BindingPlan>
  private readonly isCertain: boolean
  private readonly duplicates: boolean

  constructor({ bindings, actions, intensity, faults }: Scenario) {
    this.plans = bindings
    // A letter that a handler has had is handed over again when its process could not commit that.
    this.isCertain = intensity === 0 && actions.every(({ _tag }) => _tag !== "Kill" && _tag !== "Stop")
    this.duplicates = faults.faults.some(({ effect }) => effect._tag === "Duplicate")
  }

  /** Time at which something happened to the dead letters of a binding last. */
  touchedMillis(plan: BindingPlan): number {
    return Math.max(
      ...[...deadLetterTopics(plan), plan.name].map((name) => this.touched.get(name) ?? Number.NEGATIVE_INFINITY)
    )
  }

  apply(entry: Entry): void {
    switch (entry._tag) {
      case "Stored":
        this.stored(entry)
        return
      case "Truncated":
        this.touched.set(entry.partition.slice(0, entry.partition.lastIndexOf("/")), entry.atMillis)
        return
      case "Broker": {
        const { entry: what, atMillis } = entry
        const topics = what._tag === "Appended" ? [what] : what._tag === "Committed" ? what.offsets : []
        for (const { topic } of topics) this.touched.set(topic.replace(/\.replays$/, ""), atMillis)
        return
      }
      case "Replayed":
        for (const { name } of this.plans) this.touch(name, entry.atMillis)
        return
      case "ReplayEnded":
        this.touch(entry.binding, entry.atMillis)
        return
      case "Discarded": {
        this.touch(entry.binding, entry.atMillis)
        const { discarded } = this.of(this.groupOf(entry.binding))
        const isCertain = entry.discarded === entry.letters.length
        for (const place of entry.letters) discarded.set(place, discarded.get(place) === true || isCertain)
        return
      }
      case "LetterHandled":
        this.touch(entry.binding, entry.atMillis)
        this.of(this.groupOf(entry.binding)).handled.add(placeOf(entry.partition, entry.offset))
    }
  }

  /** How many letters of a binding are not dealt with, of those that a reader of committed records finds now. */
  waiting(plan: BindingPlan, logs: ReadonlyMap<string, LogState>): Bounds {
    const letters = this.of(plan.groupId)
    const { stored, replayed } = letters
    let least = 0
    let most = 0
    for (const [name, all] of Map.groupBy(stored, ({ id, replays }) => nameOf(id, replays))) {
      const there = all.filter(({ partition, offset }) => logs.get(partition)?.offsets.includes(offset))
      const bounds = there.map((letter) => this.boundsOf(letter, plan, letters))
      const least1 = bounds.filter(({ least }) => least === 1).length
      const most1 = bounds.filter(({ most }) => most === 1).length
      const copies = replayed.get(name) ?? 0
      least += Math.max(0, least1 - copies)
      most += this.duplicates ? most1 : Math.min(most1, Math.max(0, all.length - copies))
    }
    return { least, most }
  }

  private boundsOf({ partition, offset, id }: Letter, plan: BindingPlan, { discarded, handled }: Letters): Bounds {
    const isDiscarded = discarded.get(placeOf(partition, offset))
    if (isDiscarded === true) return { least: 0, most: 0 }
    const isHandled = plan.handlesLetters && handled.has(placeOf(partition, offset)) && !failsFor(id)
    return {
      least: isDiscarded === false || isHandled ? 0 : 1,
      most: isHandled && this.isCertain ? 0 : 1
    }
  }

  private stored({ partition, copies }: Extract<Entry, { readonly _tag: "Stored" }>): void {
    const topic = partition.slice(0, partition.lastIndexOf("/"))
    const isLetters = this.plans.some((plan) => deadLetterTopics(plan).includes(topic))
    for (const { offset, copy, isReadable, isReplay } of copies) {
      if (!isReadable) continue
      const replays = Copies.replaysOf(copy)
      if (isLetters) {
        const owner = Copies.ownerOf(copy)
        if (owner !== undefined) this.of(owner).stored.push({ partition, offset, id: copy.id, replays })
      } else if (isReplay) {
        const { replayed } = this.of(copy.headers.get("replay-group") ?? "")
        const name = nameOf(copy.id, replays - 1)
        replayed.set(name, (replayed.get(name) ?? 0) + 1)
      }
    }
  }

  private touch(binding: string, atMillis: number): void {
    this.touched.set(binding, atMillis)
  }

  private groupOf(binding: string): string {
    return this.plans.find(({ name }) => name === binding)!.groupId
  }

  private of(group: string): Letters {
    const known = this.groups.get(group)
    if (known !== undefined) return known
    const fresh: Letters = { stored: [], replayed: new Map(), discarded: new Map(), handled: new Set() }
    this.groups.set(group, fresh)
    return fresh
  }
}
