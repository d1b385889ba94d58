/**
 * Reads from the effects of all processes whether the order of each key was kept.
 *
 * The file has the steps of all processes in the order in which they were taken. A record is done with its `Done`, or with the `Failed` behind which
 * it is dead-lettered. Each process works in tenures: from one assignment of the partition to its end.
 *
 * - Nobody begins record i of a key before each record below i is done, by whomever. This holds for every line, also of a process that has lost the partition and does not know
 *   it yet: it knows only records whose predecessors it has handled itself, or that somebody had done before it.
 * - Behind record i of a key comes at most i + 1 (rewind, never skip). A new tenure may begin anywhere below: the former owner died before it committed what it did.
 * - The last effect of a key is that of its last record.
 *
 * The second and third rule read the steps of owners alone. Kafka fences offsets, not effects: a process that was suspended (SIGSTOP) wakes with handlers in work, which end, while
 * another process is far ahead. The effects read 20, 7, 21 then, and nothing has gone wrong: 7 changes no offset and no lock. A step counts as one of
 * a former owner from the first step of a later tenure on. From its assignment on would be too early: what a former owner publishes is believed up to the claim of the next
 * one, which stands before its first step. The steps of a former owner are still held to the first rule, and to the second within their tenure.
 */
import { type Line, partitionOf, type Step, type Tenure } from "./effects.ts"
import { fateOf, isLetter } from "./keyedRecords.ts"

/** A record as it lies in the source. */
export interface Source {
  readonly place: string
  readonly key: string
  readonly n: number
}

export interface Verdict {
  /** Each break of a rule, with the steps of its key before it. */
  readonly faults: ReadonlyArray<string>
  /** Begun again by a later owner after it was done. */
  readonly repeated: number
  /** Steps of owners that had lost their partition. */
  readonly late: number
  readonly tenures: number
}

/** One key, as far as the lines were read. */
class Key {
  readonly records: Array<Source> = []
  readonly done = new Set<number>()
  /** Each record below is done. */
  doneTo = 0
  /** The record that the owners finished last; -1 for none. */
  last = -1
  /** The same for each tenure. */
  readonly lastOf = new Map<Tenure, number>()
  /** By tenure: the record in work. */
  readonly open = new Map<Tenure, number>()
  readonly history: Array<string> = []

  finish(index: number): void {
    this.done.add(index)
    while (this.done.has(this.doneTo)) this.doneTo++
  }
}

/** A `Failed` behind which the record is dead-lettered: in the last tier, or where its error says so. */
const isFinal = (step: Step, n: number): boolean => {
  const fate = fateOf(n)
  return step._tag === "Failed" && (fate === "at-once" || (fate === "always" && step.tier === 2))
}

export const of = (lines: ReadonlyArray<Line>, sources: ReadonlyArray<Source>): Verdict => {
  const keys = new Map<string, Key>()
  const found = new Map<string, { readonly key: Key; readonly index: number; readonly n: number }>()
  for (const source of sources) {
    const key = keys.get(source.key) ?? new Key()
    keys.set(source.key, key)
    found.set(source.place, { key, index: key.records.push(source) - 1, n: source.n })
  }
  const faults: Array<string> = []
  /** Tenures in the order of their assignments. */
  const orderOf = new Map<Tenure, number>()
  /** By partition: the newest tenure that has taken a step. */
  const owners = new Map<number, number>()
  let repeated = 0
  let late = 0
  for (const line of lines) {
    if (line._tag === "Assigned") {
      orderOf.set(line.tenure, orderOf.size)
      continue
    }
    const { tenure, place, tier } = line
    const at = found.get(place)
    const order = orderOf.get(tenure)
    if (at === undefined || order === undefined) {
      faults.push(`${JSON.stringify(line)} is of no record, or of no tenure`)
      continue
    }
    const { key, index, n } = at
    const partition = partitionOf(place)
    const isOwner = order >= (owners.get(partition) ?? -1)
    if (isOwner) owners.set(partition, order)
    else late++
    key.history.push(`${tenure}${isOwner ? "" : " (late)"} ${line._tag} #${index} ${place} tier ${tier}`)
    const fault = (what: string) => faults.push([what, ...key.history.slice(-12)].join("\n  "))
    if (line._tag === "Started") {
      const last = isOwner ? key.last : key.lastOf.get(tenure)
      if (index > key.doneTo) fault(`skip: #${index} begins, and #${key.doneTo} was never done`)
      else if (last !== undefined && index > last + 1) fault(`skip: #${index} begins behind #${last}`)
      if (key.open.has(tenure)) fault(`overlap: #${index} begins while #${key.open.get(tenure)} is in work`)
      if (index < key.doneTo) repeated++
      key.open.set(tenure, index)
      continue
    }
    if (key.open.get(tenure) !== index) fault(`#${index} ends, and was not in work`)
    key.open.delete(tenure)
    if (line._tag === "Failed" && !isFinal(line, n)) continue
    key.finish(index)
    key.lastOf.set(tenure, index)
    if (isOwner) key.last = index
  }
  for (const [name, key] of keys) {
    const count = key.records.length
    if (key.doneTo < count) faults.push(`lost: #${key.doneTo} of ${name}, ${key.records[key.doneTo]!.place}`)
    else if (key.last !== count - 1) faults.push(`the last effect of ${name} is #${key.last} of ${count}`)
  }
  return { faults, repeated, late, tenures: orderOf.size }
}

/**
 * Records that were handled twice although nothing forced it: `place` by place. A handler that fails while its partition is given up publishes no retry (ruling 17): its record comes
 * again, and so may what is done behind it. That is seen from outside: the same record is begun again in the same tier.
 */
export const handledTwice = (lines: ReadonlyArray<Line>): ReadonlyArray<string> => {
  const failures = new Map<string, Step>()
  const excused = new Set<Tenure>()
  const done = new Map<string, Step>()
  const twice: Array<readonly [Step, Step]> = []
  for (const line of lines) {
    if (line._tag === "Assigned") continue
    const attempt = `${line.place}/${line.tier}`
    const failed = failures.get(attempt)
    if (line._tag === "Started" && failed !== undefined) excused.add(`${failed.tenure}/${partitionOf(line.place)}`)
    if (line._tag === "Failed") failures.set(attempt, line)
    if (line._tag !== "Done") continue
    const before = done.get(line.place)
    if (before !== undefined) twice.push([before, line])
    done.set(line.place, line)
  }
  return twice
    .filter(([{ tenure, place }]) => !excused.has(`${tenure}/${partitionOf(place)}`))
    .map(
      ([before, after]) => `${before.place}: ${before.tenure} tier ${before.tier}, ${after.tenure} tier ${after.tier}`
    )
}

export const letterPlaces = (sources: ReadonlyArray<Source>): ReadonlyArray<string> =>
  sources.filter(({ n }) => isLetter(n)).map(({ place }) => place)
