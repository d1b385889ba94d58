/**
 * The text of the demo: progress and account as lines.
 */
import type { Account, DeadLetterGroup } from "./account.ts"
import {
  type Announcement,
  inOutbox,
  onTheirWay,
  type PartitionProgress,
  type Progress,
  type TierProgress
} from "./progress.ts"
import { blue, bold, dim, green, magenta, red, yellow } from "./screen.ts"

const barWidth = 28
const maxProblems = 20

/** The whole screen. `planned` is the expected number of orders in one partition, which is the length of a bar. */
export const picture = (
  progress: Progress,
  title: string,
  planned: number,
  nowMillis: number
): ReadonlyArray<string> => {
  const full = Math.max(planned, ...progress.partitions.map(({ end }) => end))
  return [
    heading(title),
    "",
    `  checkout   ${placed(progress)}`,
    "",
    dim(`  partition  owner  ${"finished █  waiting ░".padEnd(barWidth)}  finished/all  in hand`),
    ...progress.partitions.map((partition, index) => row(partition, index, full, nowMillis)),
    "",
    ...progress.tiers.map((tier, index) => tierRow(tier, index, nowMillis)),
    `  breaker    ${breakers(progress, nowMillis)}`,
    "",
    `  ${totals(progress)}`,
    "",
    ...progress.announcements.map(announcement)
  ]
}

export const heading = (title: string): string => `${bold("Event Bus Connector")} ${dim(`· on ${title}`)}`

export const announcement = ({ atMillis, text }: Announcement): string =>
  `  ${dim(`${seconds(atMillis).padStart(4)} s`)}  ${text}`

/** The checkout's events: committed, and not yet published. */
const placed = (progress: Progress): string => {
  const { placed, rolledBack } = progress.counts
  return `${placed} orders committed · ${rolledBack} rolled back · ${inOutbox(progress)} in the outbox`
}

/** The number of orders in each state, which add up to the total, and the number of retries. */
export const totals = (progress: Progress): string => {
  const { placed, handled, retries, routed, deadLettered } = progress.counts
  const parts = [
    `${green(String(handled))} handled`,
    `${red(String(deadLettered))} dead-lettered`,
    `${onTheirWay(progress)} on their way`
  ]
  const again = `${yellow(String(retries))} in place, ${yellow(String(routed))} by topic`
  return `${placed} committed so far = ${parts.join(" + ")} · retries: ${again}`
}

const row = (partition: PartitionProgress, index: number, full: number, nowMillis: number): string => {
  const { owner, committed, end } = partition
  const finished = Math.round((committed / full) * barWidth)
  const arrived = Math.max(finished, Math.ceil((end / full) * barWidth))
  const paint = colourOf(owner)
  const bar = paint("█".repeat(finished)) + dim("░".repeat(arrived - finished)) + " ".repeat(barWidth - arrived)
  const name = paint((owner ?? "-").padEnd(5))
  return `  orders-${index}   ${name}  ${bar}  ${`${committed}/${end}`.padStart(12)}  ${inHand(partition, nowMillis)}`
}

const inHand = ({ inHand }: PartitionProgress, nowMillis: number): string => {
  if (inHand === undefined) return ""
  const { offset, sinceMillis, failure } = inHand
  if (failure?.next === "retry") return yellow(`#${offset} ${failure.exception}: again`)
  if (failure?.next === "elsewhere") return red(`#${offset} ${failure.exception}`)
  const forMillis = nowMillis - sinceMillis
  return forMillis < 300 ? dim(`#${offset}`) : `#${offset} for ${seconds(forMillis)} s`
}

/** A retry topic with a countdown to the next due order. */
const tierRow = ({ dueMillis, delayMillis }: TierProgress, index: number, nowMillis: number): string => {
  const [first] = dueMillis
  const next = first === undefined ? "" : ` · next due in ${seconds(Math.max(0, first - nowMillis))} s`
  const waiting = first === undefined ? dim("empty") : yellow(`${dueMillis.length} waiting${next}`)
  return `  retry-${index + 1}    ${dim(`after ${seconds(delayMillis)} s`)}  ${waiting}`
}

/** The circuit breakers that are not closed. */
const breakers = ({ breakers }: Progress, nowMillis: number): string => {
  const notClosed = Array.from(breakers).filter(([, { state }]) => state !== "CLOSED")
  if (notClosed.length === 0) return dim("closed")
  const look = (at: number | undefined) =>
    at === undefined ? "" : `, looks again in ${seconds(Math.max(0, at - nowMillis))} s`
  return notClosed
    .map(([instance, { state, looksAtMillis }]) => red(`${instance} ${state}${look(looksAtMillis)}`))
    .join(" · ")
}

const colourOf = (owner: string | undefined) => (owner === undefined ? dim : owner === "app-1" ? blue : magenta)

const seconds = (millis: number): string => (millis / 1000).toFixed(1)

export const keyOrderHeading = `${bold("Order per key")} ${dim('· a binding with orderingMode "PER_KEY" and onDeadLetter "hold"')}`

export const keyOrderVerdict = (problems: ReadonlyArray<string>): ReadonlyArray<string> =>
  problems.length === 0
    ? [green("  ✔ every customer was charged in order")]
    : problems.map((problem) => red(`  ✘ ${problem}`))

/** The final state of every order. */
export const accountLines = (account: Account, database: string, rolledBack: number): ReadonlyArray<string> => {
  const good = account.problems.length === 0
  return [
    "",
    `${bold("Account of every order")} ${dim("· read from database, topics and committed offsets")}`,
    "",
    entry("orders committed", account.placed, `in ${database}; ${rolledBack} more rolled back`),
    entry("orders published by the outbox", account.produced, "in topic orders, once each"),
    entry("├ paid", account.paid, "in topic payments, once each"),
    entry("├ dead-lettered", account.deadLettered, "in topic orders.DLT, bytes unchanged"),
    ...deadLetterEntries(account),
    entry("├ waiting for the next start", account.waiting, "behind the committed offsets"),
    entry("└ lost", account.lost, "committed, and in none of these topics"),
    "",
    entry("finished more than once", account.repeated, "paid or dead-lettered again"),
    entry("finished and not committed", account.uncommitted, "the next start does these again"),
    "",
    ...account.problems.slice(0, maxProblems).map((problem) => red(`  ✘ ${problem}`)),
    ...(good ? [green(`  ✔ every record accounted for: ${account.produced} = ${sum(account)}`)] : [])
  ]
}

const entry = (label: string, count: number, note: string): string =>
  `  ${label.padEnd(34)}${String(count).padStart(5)}   ${dim(note)}`

/** The outage has its own line, since a card that no bank charges becomes a dead letter without an outage. */
const deadLetterEntries = ({ deadLetterGroups, hopeless, outage }: Account): ReadonlyArray<string> =>
  deadLetterGroups.flatMap((group) => {
    const own = entry(`│   ${group.exception}`, group.count, explain(group))
    if (group.exception !== "GatewayDown") return own
    return [
      own,
      entry("│     cards that are never charged", hopeless, "out of reach for good, or cursed, outage or not"),
      entry("│     because of the outage", outage, "cards that the bank charges when it is up")
    ]
  })

const sum = ({ paid, deadLettered, waiting }: Account): string =>
  [`${paid} paid`, `${deadLettered} dead-lettered`, ...(waiting > 0 ? [`${waiting} waiting`] : [])].join(" + ")

/** Numbers of dead letters by attempts. The first number is omitted when it is the total. */
const explain = ({ reason, attempts }: DeadLetterGroup): string => {
  const parts = attempts.map(({ attempts, count }) => ({ count, text: afterAttempts(attempts) }))
  const told = parts.map(({ count, text }) => (parts.length === 1 ? text : `${count} ${text}`))
  return `${reason}: ${told.join(", ")}`
}

const afterAttempts = (attempts: number): string =>
  attempts === 0 ? "not attempted" : `after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}`
