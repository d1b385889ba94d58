/**
 * The state of a run in which topics are deleted and made again, by the ids of records: an offset says nothing there, since two records have it.
 */
import type { RecordPlan } from "../scenario/Scenario.ts"
import type { Entry } from "./History.ts"

export class Incarnations {
  /** Records whose main topic is still the one that they were published to. */
  readonly published = new Map<string, RecordPlan>()
  /** Records that a handler has handled. */
  readonly done = new Set<string>()
  /** Records with a copy in a retry topic that was deleted. */
  readonly lostCopies = new Set<string>()
  private readonly topics = new Map<string, Set<string>>()
  private readonly calls = new Map<number, ReadonlyMap<bigint, string>>()

  apply(entry: Entry): void {
    switch (entry._tag) {
      case "Published":
        for (const plan of entry.records) {
          this.published.set(plan.id, plan)
          this.inTopic(entry.partition).add(plan.id)
        }
        return
      case "Stored":
        for (const { copy } of entry.copies) this.inTopic(entry.partition).add(copy.id)
        return
      case "Removed":
        for (const id of this.topics.get(entry.topic) ?? []) {
          if (entry.isMain) this.published.delete(id)
          else this.lostCopies.add(id)
        }
        this.topics.delete(entry.topic)
        return
      case "Called":
        this.calls.set(entry.call, new Map(entry.offsets.map((offset, index) => [offset, entry.ids[index]!])))
        return
      case "Returned": {
        const ids = this.calls.get(entry.call)
        this.calls.delete(entry.call)
        for (const offset of entry.done) this.done.add(ids!.get(offset)!)
      }
    }
  }

  /** The ids of a topic, by the name of one of its partitions. */
  private inTopic(partition: string): Set<string> {
    const topic = partition.slice(0, partition.lastIndexOf("/"))
    const known = this.topics.get(topic) ?? new Set<string>()
    this.topics.set(topic, known)
    return known
  }
}
