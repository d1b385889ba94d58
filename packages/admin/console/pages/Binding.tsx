/** One binding: its commands, what is wrong, its partitions, tiers, consumers and figures. */
import type { BindingDetail, CommittedPartition, Container, Partition } from "../../src/Answers.ts"
import { part, post } from "../data/api.ts"
import { type Permission, useAnswer, useLive, usePermissions } from "../data/hooks.ts"
import { lagsOf } from "../data/live.ts"
import { Ask } from "../parts/Ask.tsx"
import { announce } from "../parts/announce.tsx"
import { BindingTabs, nameOf } from "../parts/BindingTabs.tsx"
import { Line } from "../parts/chart.tsx"
import { Everywhere } from "../parts/Everywhere.tsx"
import { HeldRecords } from "../parts/HeldRecords.tsx"
import { BindingState, type Column, Facts, Problem, Section, StateMark, Table, Waiting } from "../parts/layout.tsx"
import { counted, duration, number, Since, topicsOf } from "../parts/text.tsx"

interface CommandsProps {
  readonly binding: BindingDetail
  readonly may: (permission: Permission) => boolean
  readonly reload: () => void
}

const means = {
  start: "It begins to consume.",
  stop: "It ends the records that run, commits, and leaves its group.",
  pause: "It stays in its group, and no record starts until it is resumed.",
  resume: "Records go on."
} as const

type Verb = keyof typeof means

/** The commands that a state allows. */
const allowed: Readonly<Record<string, ReadonlyArray<Verb>>> = {
  RUNNING: ["pause", "stop"],
  PAUSED: ["resume", "stop"],
  STOPPED: ["start"],
  CREATED: ["start"]
}

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)

/** Nothing for callers who may not operate it. */
const Commands = ({ binding: { key, state }, may, reload }: CommandsProps) =>
  may("operate") ? (
    <p class="buttons">
      {(allowed[state] ?? []).map((verb, index) => (
        <Ask
          // The button stays where it is, with the focus, when its command is another one.
          key={index}
          verb={capital(verb)}
          question={`${capital(verb)} ${nameOf(key)} in this process?`}
          isDanger={verb === "stop"}
          asksWhy
          act={async (reason) => {
            const { state: next } = await post<BindingDetail>(`bindings/${part(key)}/${verb}?reason=${part(reason)}`)
            announce(`${nameOf(key)} is ${next.toLowerCase()}.`)
            reload()
          }}
        >
          <p>{means[verb]}</p>
        </Ask>
      ))}
    </p>
  ) : null

const partitions: ReadonlyArray<Column<Partition>> = [
  { title: "Partition", of: ({ topic, partition }) => `${topic}-${partition}` },
  { title: "Lag", of: ({ lag }) => number(lag), isNumber: true },
  { title: "Paused by", of: ({ pauses }) => (pauses.length === 0 ? "–" : pauses.join(", ")) },
  {
    title: "Has not moved for",
    of: ({ waitingMillis }) => (waitingMillis === 0 ? "–" : duration(waitingMillis)),
    isExtra: true
  },
  { title: "In work", of: ({ inFlight, buffered }) => `${inFlight} (${buffered} more fetched)`, isExtra: true },
  { title: "Position", of: ({ position }) => position, isNumber: true, isExtra: true },
  { title: "Committed", of: ({ committed }) => committed ?? "–", isNumber: true, isExtra: true },
  { title: "Log end", of: ({ logEnd }) => logEnd, isNumber: true, isExtra: true }
]

const committedPartitions: ReadonlyArray<Column<CommittedPartition>> = [
  { title: "Partition", of: ({ topic, partition }) => `${topic}-${partition}` },
  { title: "Lag", of: ({ lag }) => number(lag), isNumber: true },
  { title: "Committed", of: ({ committed }) => committed ?? "–", isNumber: true },
  { title: "Log end", of: ({ logEnd }) => logEnd, isNumber: true, isExtra: true }
]

const Partitions = ({ assigned, committed }: BindingDetail) => {
  const title = committed === undefined ? "Partitions of this process" : "Partitions"
  const keyOf = ({ topic, partition }: Pick<Partition, "topic" | "partition">) => `${topic}-${partition}`
  return (
    <Section title={title}>
      {(committed ?? assigned).length === 0 ? (
        <p class="dim">None.</p>
      ) : committed === undefined ? (
        <Table label="Partitions" rows={assigned} columns={partitions} keyOf={keyOf} />
      ) : (
        <Table label="Partitions" rows={committed} columns={committedPartitions} keyOf={keyOf} />
      )}
    </Section>
  )
}

const Tiers = ({ binding, may, reload }: CommandsProps) => {
  const { key, containers, assigned, committed = assigned, pausedTiers } = binding
  const tiers = containers.filter(({ tier }) => tier > 0)
  if (tiers.length === 0) return null
  const command = (tier: number, verb: "pause" | "resume") => (
    <Ask
      verb={capital(verb)}
      question={`${capital(verb)} retry tier ${tier} of ${nameOf(key)}?`}
      asksWhy
      act={async (reason) => {
        await post(`bindings/${part(key)}/${verb}?tier=${tier}&reason=${part(reason)}`)
        announce(`Retry tier ${tier} of ${nameOf(key)}: ${verb} is done.`)
        reload()
      }}
    >
      <p>{verb === "pause" ? "Its records wait until it is resumed." : means.resume}</p>
    </Ask>
  )
  const columns: ReadonlyArray<Column<Container>> = [
    { title: "Tier", of: ({ tier }) => `Tier ${tier}` },
    {
      title: "State",
      of: ({ tier, state }) => BindingState({ ...binding, state: pausedTiers.includes(tier) ? "PAUSED" : state })
    },
    {
      title: "Waiting",
      of: ({ tier }) => {
        const own = committed.filter((each) => each.tier === tier)
        return own.length === 0 ? "–" : number(own.reduce((sum, { lag }) => sum + lag, 0))
      },
      isNumber: true
    },
    { title: "Topic", of: topicsOf, isExtra: true },
    ...(may("operate") && binding.state !== "STOPPED" && binding.state !== "CREATED"
      ? [
          {
            title: "Command",
            of: ({ tier }: Container) => command(tier, pausedTiers.includes(tier) ? "resume" : "pause")
          }
        ]
      : [])
  ]
  return (
    <Section title="Retry tiers">
      <Table label="Retry tiers" rows={tiers} columns={columns} keyOf={({ name }) => name} />
    </Section>
  )
}

/** As the cluster showed it. */
const outsideFacts = ({ outside }: BindingDetail) =>
  outside?.asOf === undefined
    ? []
    : ([
        ["As of", <Since key="asOf" at={outside.asOf} />],
        ["Members of the group", outside.members]
      ] as const)

/** A look from outside says by its time that it has seen nothing yet. */
const unknownLag = (outside: BindingDetail["outside"]) =>
  outside === undefined ? "not known: this process owns no partition" : undefined

/** The message, which may quote a record, is in the log. */
const newestFailure = ({ newestFailure: newest }: BindingDetail) =>
  newest === undefined ? undefined : (
    <span key="failure">
      {newest.exceptionClass}, {newest.position}
      {newest.origin === undefined ? "" : `, first ${newest.origin}`}, <Since at={newest.at} />
    </span>
  )

const waitingRetries = ({ retries }: BindingDetail) =>
  retries?.map(({ topic, waiting }) => `${topic}: ${number(waiting)}`).join(", ")

const factsOf = (binding: BindingDetail) => {
  const { groupId, since, pausedBy, lag, breaker, metrics, consumers, deadLetters, outside } = binding
  return [
    ["Since", outside === undefined ? <Since key="since" at={since} /> : undefined],
    ...outsideFacts(binding),
    ["Paused by", pausedBy.join(", ")],
    ["Lag", lag === undefined ? unknownLag(outside) : counted(lag, "record")],
    ["Of it in retry topics", waitingRetries(binding)],
    ["Newest failure", newestFailure(binding)],
    ["Dead letters", deadLetters === undefined ? undefined : number(deadLetters)],
    ["Circuit breaker", breaker === undefined ? undefined : <StateMark key="breaker" state={breaker} />],
    ["Topic", topicsOf(binding)],
    ["Group", groupId],
    ["Handled", metrics === undefined ? undefined : number(metrics.processed)],
    ["Failed deliveries", metrics === undefined ? undefined : number(metrics.failed)],
    ["Dead-lettered", metrics === undefined ? undefined : number(metrics.deadLettered)],
    [
      "Mean time in the handler",
      metrics?.handlerMeanMillis === undefined ? undefined : `${metrics.handlerMeanMillis.toFixed(1)} ms`
    ],
    [
      "Consumers",
      consumers.map(({ index, status, error }) => (
        <span key={index}>
          <StateMark state={status} /> {error ?? ""}
        </span>
      ))
    ]
  ] as const
}

const Detail = (props: CommandsProps) => {
  const { binding, reload } = props
  const { undecided = 0 } = binding
  const lags = lagsOf(binding.key)
  return (
    <>
      <p class="lead">
        <BindingState {...binding} />
      </p>
      {binding.outside === undefined ? (
        <Commands {...props} />
      ) : (
        <p>This console runs no bindings: use the fleet, or the console of a process that runs it.</p>
      )}
      <Everywhere binding={binding} done={props.reload} />
      {binding.problems.length > 0 && (
        <ul class="sentences" aria-label="What is wrong">
          {binding.problems.map((problem) => (
            <li key={problem.replace(/\d+/g, "")} class="bad">
              {problem}
            </li>
          ))}
        </ul>
      )}
      {undecided > 0 && (
        <Section title="Records that wait for a decision">
          <HeldRecords binding={binding.key} count={undecided} decided={reload} />
        </Section>
      )}
      <Facts facts={factsOf(binding)} />
      {Math.max(0, ...lags) > 0 && (
        <figure>
          <Line
            values={lags}
            label={`Lag while this page is open: now ${binding.lag ?? "not known"}, at most ${Math.max(...lags)}`}
          />
          <figcaption class="dim">Lag while this page is open, at most {number(Math.max(...lags))}</figcaption>
        </figure>
      )}
      <Partitions {...binding} />
      <Tiers {...props} />
    </>
  )
}

export const Binding = ({ binding: key }: { readonly binding: string }) => {
  const may = usePermissions(key)
  useLive()
  const { value, refusal, reload } = useAnswer<BindingDetail>(`bindings/${part(key)}`, () => 2_000)
  return (
    <>
      <BindingTabs binding={key} tab="Binding" />
      {value === undefined ? (
        <Waiting refusal={refusal} />
      ) : (
        <>
          <Problem refusal={refusal} />
          <Detail binding={value} may={may} reload={reload} />
        </>
      )}
    </>
  )
}
