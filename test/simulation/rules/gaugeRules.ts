/**
 * Rules about gauges (ruling 75): a gauge is computed when it is read, so it agrees with the history and with the broker's logs at this moment.
 */
import type { Snapshot } from "@eventbus/core"
import type { FigureBook } from "../history/FigureBook.ts"
import { figureKey, type LogState } from "../history/figures.ts"
import { hasRemakes } from "../scenario/remakes.ts"
import { groupOf, mainTopics, waitsGrow } from "../scenario/retries.ts"
import { type BindingPlan, planOf } from "../scenario/Scenario.ts"
import type { FigureRule, Read } from "./FigureRule.ts"

const states = { CREATED: 0, RUNNING: 1, PAUSED: 2, STOPPED: 3, DESTROYED: 4 }
const circuits = { CLOSED: 0, DISABLED: 0, OPEN: 1, FORCED_OPEN: 1, HALF_OPEN: 2 }

/** States are those that the process reported last, and an operator's pause shows at once. */
const shown: FigureRule["check"] = ({ process, series, snapshots }, book) => {
  const { states: known, breakers, paused, sessions, closing } = book.of(process)
  for (const { name, state, breaker } of snapshots) {
    const wrong = (figure: string, is: unknown, should: unknown) =>
      `${process}: ${figure} of ${name} is ${is}, and the history has ${should}`
    const expected = known.get(name) ?? "CREATED"
    if (state !== expected) return wrong("state", state, expected)
    const shownState = series.get(figureKey("eventbus.container.state", name))
    if (shownState !== states[state]) return wrong("container.state", shownState, state)
    if (paused.has(name) && state !== "PAUSED") return wrong("state", state, "an operator's pause")
    const running = series.get(figureKey("eventbus.consumers.running", name)) ?? -1
    const open = sessions.get(name)?.size ?? 0
    if (running < open || running > open + (closing.get(name)?.size ?? 0))
      return wrong("consumers.running", running, open)
    if (breaker === undefined) continue
    const circuit = breakers.get(name) ?? "CLOSED"
    if (breaker.state !== circuit) return wrong("breaker", breaker.state, circuit)
    const shownCircuit = series.get(figureKey("eventbus.circuit.state", name))
    if (shownCircuit !== circuits[breaker.state]) return wrong("circuit.state", shownCircuit, breaker.state)
  }
  return undefined
}

/**
 * Series that add up others, or that show one figure under two names. While a consumer does not know that it has lost a partition, the series show one of its
 * assignments.
 */
const agreeing: FigureRule["check"] = (read, book) => {
  const { process, series, snapshots } = read
  const owned = ownedOf(read, book)
  for (const { name, partitions } of snapshots) {
    const names = new Set(owned.filter(({ plan }) => plan.name === name).map((of) => of.name))
    if (names.size < partitions.length) continue
    const plan = planOf(book.scenario, name)
    const depths = new Map<string, number>()
    let greatest = 0
    for (const at of partitions) {
      const lag = Number(at.lag)
      greatest = Math.max(greatest, lag)
      depths.set(at.topic, (depths.get(at.topic) ?? 0) + lag)
      const both = [
        series.get(figureKey("eventbus.consumer.lag", name, at.topic, at.partition)),
        series.get(figureKey("kafka.consumer.lag", groupOf(plan, at.topic), at.topic, at.partition))
      ]
      if (both.some((value) => value !== lag))
        return `${process}: the lag of ${at.topic}/${at.partition} is ${lag}, and its series show ${both.join(" and ")}`
      const stalled = series.get(figureKey("eventbus.partition.stalled", name, at.topic, at.partition))
      if (stalled !== at.waitingMillis / 1000)
        return `${process}: ${at.topic}/${at.partition} waits for ${at.waitingMillis} ms, and its series shows ${stalled} s`
    }
    const max = series.get(figureKey("kafka.consumer.records.lag.max", plan.groupId, name))
    if (max !== undefined && max !== greatest)
      return `${process}: the greatest lag of ${name} is ${greatest}, not ${max}`
    const tiers = [...series].filter(([key]) => key.startsWith(`${figureKey("eventbus.retry.tier.depth", name)} `))
    const sum = tiers.reduce((all, [, value]) => all + value, 0)
    const waiting = [...depths].reduce((all, [topic, lag]) => (mainTopics(plan).includes(topic) ? all : all + lag), 0)
    if (sum !== waiting) return `${process}: the tiers of ${name} have lags of ${waiting}, and depths of ${sum}`
  }
  return undefined
}

type PartitionSnapshot = Snapshot.PartitionSnapshot

/**
 * A partition that a process owns, as its snapshot and the broker see it. Partitions that two consumers of the process believe to own are left out: one of them is
 * wrong, and does not know it yet. So is an assignment that is over without its consumer knowing it.
 */
interface Owned {
  readonly plan: BindingPlan
  readonly at: PartitionSnapshot
  readonly name: string
  readonly log: LogState
}

const ownedOf = ({ process, snapshots, logs }: Read, book: FigureBook): ReadonlyArray<Owned> =>
  snapshots.flatMap(({ name: binding, partitions }) => {
    const plan = planOf(book.scenario, binding)
    return partitions.flatMap((at) => {
      const name = `${at.topic}/${at.partition}`
      const owner = book.ownerOf(groupOf(plan, at.topic), name)
      const isOwner =
        owner?.process === process &&
        owner.generation === at.generation &&
        partitions.every((other) => other === at || other.topic !== at.topic || other.partition !== at.partition)
      return isOwner ? [{ plan, at, name, log: logs.get(name)! }] : []
    })
  })

/** Longest time in which the lag poller learns a log end: two rounds with a request that is not answered. */
const staleMillis = 40_000
/** Whether nothing has happened to a partition for so long that every figure must know of it. */
const isQuiet = ({ atMillis }: Read, book: FigureBook, partition: string): boolean => {
  const enough = book.scenario.intensity === 0 ? staleMillis / 2 : staleMillis
  return atMillis - book.touchedMillis(partition) >= enough && atMillis - book.troubledUntilMillis >= enough
}

/** Lag 0 is exact, and every lag is an upper bound that never passes what lies in the log behind the committed offset. */
const lag: FigureRule["check"] = (read, book) => {
  for (const { plan, at, name, log } of ownedOf(read, book)) {
    const committed = log.committed ?? 0n
    const is = `${read.process}: the lag of ${name} is ${at.lag}`
    const quiet = isQuiet(read, book, name)
    // A consumer of a topic that is made again does not know that at once.
    if (hasRemakes(book.scenario) && !quiet) continue
    // A former owner commits in transactions until it is fenced, and the owner learns that when it restarts the partition.
    if (plan.listener === "transactional" && !quiet) continue
    // Records that were fetched before retention took them are still to be handled.
    const isPassed = quiet && committed < log.logStart && at.buffered + at.inFlight === 0
    const most = log.logEnd - (isPassed ? log.logStart : committed)
    if (at.lag > (most > 0n ? most : 0n))
      return `${is}, and there are ${most} offsets from ${committed} to ${log.logEnd}`
    if (!quiet) continue
    // Where waits grow, records behind the position may be finished: those that are not have begun.
    const least = waitsGrow(plan, at.topic)
      ? at.inFlight
      : log.offsets.filter((offset) => offset >= at.position && offset >= committed).length
    if (at.lag < least) return `${is}, and ${least} records wait from ${at.position} on`
    if (at.position < committed) return `${name} is read from ${at.position}, and ${committed} is committed`
  }
  return undefined
}

/** Figures of records in memory and in work. */
const held: FigureRule["check"] = (read, book) => {
  const { process, series, snapshots, atMillis } = read
  const { inFlight, assignedMillis } = book.of(process)
  const owned = new Set(ownedOf(read, book).map(({ name }) => name))
  for (const { name: binding, partitions } of snapshots) {
    const isTransactional = planOf(book.scenario, binding).listener === "transactional"
    for (const at of partitions) {
      if (!owned.has(`${at.topic}/${at.partition}`)) continue
      const name = `${at.topic}/${at.partition}`
      const begun = inFlight.get(name)?.size ?? 0
      // A transaction that is aborted hands its records back.
      if (at.inFlight < begun && !isTransactional)
        return `${process}: ${name} has ${at.inFlight} records in flight, and ${begun} have begun`
      if (at.buffered < 0 || at.bufferedBytes < 0 || (at.buffered === 0 && at.bufferedBytes !== 0))
        return `${process}: ${name} has ${at.bufferedBytes} bytes of ${at.buffered} records`
      const age = series.get(figureKey("eventbus.oldest.record.age", binding, at.topic, at.partition)) ?? -1
      if (at.inFlight === 0 ? age !== 0 : age < 0 || Math.round(age * 1000) > atMillis)
        return `${process}: the oldest of ${at.inFlight} records of ${name} is ${age} s old`
      const longest = atMillis - (assignedMillis.get(name) ?? 0)
      if (at.lag === 0n ? at.waitingMillis !== 0 : at.waitingMillis > longest)
        return `${process}: ${name} with lag ${at.lag} waits for ${at.waitingMillis} ms, and it was assigned ${longest} ms ago`
    }
  }
  return undefined
}

export const gaugeRules: ReadonlyArray<FigureRule> = [
  { name: "figures-shown", check: shown },
  { name: "figures-agree", check: agreeing },
  { name: "lag", check: lag },
  { name: "figures-held", check: held }
]
