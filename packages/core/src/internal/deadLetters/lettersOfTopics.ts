/**
 * The dead letters of a binding. Those of a binding of several topics lie in one dead letter topic for each: lists and figures show all of them, and a command that is about positions,
 * or that changes something, is told which topic it is about.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Admin, Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { GroupReport } from "../../DeadLetterGroup.ts"
import type { DeadLetters, Stats } from "../../Replay.ts"
import { mostGroups } from "../letters/groupTally.ts"
import * as LetterPages from "../letters/letterPages.ts"
import * as TopicArgument from "../replay/topicArgument.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"
import * as Commands from "./commands.ts"

/** The commands of operators, and the figure of the gauge. */
type Letters = DeadLetters & Pick<Commands.DeadLetterCommands, "countWaiting">

export interface LettersOfTopics {
  /** Of all topics together. */
  readonly all: Letters
  /** In the order of the topics. */
  readonly each: ReadonlyArray<Commands.DeadLetterCommands>
}

/** `services` are those that the binding's layer for rehearsals may require. */
export const make = <R>(
  definition: BindingDefinition<R>,
  broker: Broker["Service"],
  hostname: string,
  services: Context.Context<R>
): LettersOfTopics => {
  const topics = Sources.topicsOf(definition)
  const each = Sources.of(definition).map((source) => Commands.make(source, broker, hostname, services))
  const [first] = each
  const ofTopic: DeadLetters["ofTopic"] = (topic) =>
    Effect.map(TopicArgument.indexOf("deadLetters", topics, topic), (at) => ({ ...each[at]!, ofTopic }))
  return { all: { ...(each.length === 1 ? first! : together(definition, broker, each)), ofTopic }, each }
}

const together = (
  definition: BindingDefinition<unknown>,
  broker: Broker["Service"],
  each: ReadonlyArray<Commands.DeadLetterCommands>
): Omit<Letters, "ofTopic"> => {
  const topics = Sources.topicsOf(definition)
  const targets = Sources.of(definition).map((source) => Commands.listTarget(source, broker))
  const collect = <A, E>(use: (letters: Commands.DeadLetterCommands) => Effect.Effect<A, E>) =>
    Effect.forEach(each, use)
  const refuse = (command: string) => () => TopicArgument.missing(command, topics)
  return {
    letters: (query) => LetterPages.page(targets, query),
    groups: (options) =>
      Effect.map(
        collect((letters) => letters.groups(options)),
        mergedGroups(topics)
      ),
    stats: Effect.map(
      collect((letters) => letters.stats),
      mergedStats
    ),
    countWaiting: (admin: Admin): Effect.Effect<number, BrokerError> =>
      Effect.map(
        collect((letters) => letters.countWaiting(admin)),
        (counts) => counts.reduce((sum, count) => sum + count, 0)
      ),
    discarded: Effect.map(
      collect((letters) => letters.discarded),
      (found) => found.flat()
    ),
    restored: Effect.map(
      collect((letters) => letters.restored),
      (found) => found.flat()
    ),
    transforms: each[0]!.transforms,
    replay: refuse("replay"),
    replayWindow: refuse("replayWindow"),
    replayToTier: refuse("replayToTier"),
    replayRecords: refuse("replayRecords"),
    discard: refuse("discard"),
    letter: refuse("letter"),
    list: refuse("list"),
    transformed: refuse("transformed"),
    rehearse: refuse("rehearse"),
    purge: refuse("purge")
  }
}

/** The groups of all topics, each with the topic that it is of. Of more than one report has, the last ones are counted as `other`. */
const mergedGroups =
  (topics: ReadonlyArray<string>) =>
  (reports: ReadonlyArray<GroupReport>): GroupReport => {
    const groups = reports
      .flatMap((report, at) => report.groups.map((group) => ({ ...group, sourceTopic: topics[at]! })))
      .sort((a, b) => b.count - a.count || b.lastMillis - a.lastMillis)
    const lettersOf = ({ states }: GroupReport["groups"][number]) =>
      Object.values(states).reduce((sum, n) => sum + n, 0)
    const sum = (pick: (report: GroupReport) => number) => reports.reduce((all, report) => all + pick(report), 0)
    return {
      groups: groups.slice(0, mostGroups),
      other: groups.slice(mostGroups).reduce(
        (all, group) => all + lettersOf(group),
        sum(({ other }) => other)
      ),
      foreign: sum(({ foreign }) => foreign),
      unreadable: sum(({ unreadable }) => unreadable),
      readMillis: reports.reduce((oldest, { readMillis }) => Math.min(oldest, readMillis), Number.POSITIVE_INFINITY)
    }
  }

const mergedStats = (all: ReadonlyArray<Stats>): Stats => {
  const sum = (pick: (stats: Stats) => number) => all.reduce((total, stats) => total + pick(stats), 0)
  const times = (pick: (stats: Stats) => number | undefined) => all.flatMap((stats) => pick(stats) ?? [])
  const oldest = times(({ oldestMillis }) => oldestMillis)
  const newest = times(({ newestMillis }) => newestMillis)
  return {
    count: sum(({ count }) => count),
    unreadable: sum(({ unreadable }) => unreadable),
    exhausted: sum(({ exhausted }) => exhausted),
    failed: sum(({ failed }) => failed),
    stored: sum(({ stored }) => stored),
    foreign: added(all.map(({ foreign }) => foreign)),
    oldestMillis: oldest.length === 0 ? undefined : Math.min(...oldest),
    newestMillis: newest.length === 0 ? undefined : Math.max(...newest),
    byExceptionClass: added(all.map(({ byExceptionClass }) => byExceptionClass))
  }
}

const added = (counts: ReadonlyArray<ReadonlyMap<string, number>>): ReadonlyMap<string, number> => {
  const sums = new Map<string, number>()
  for (const each of counts) for (const [name, count] of each) sums.set(name, (sums.get(name) ?? 0) + count)
  return sums
}
