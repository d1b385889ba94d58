/** All processes that run the bindings: versions, who is stale, whose clock is off, who holds what, and who has released it. */
import type { Hold, Process, Release, View } from "../../src/FleetAnswers.ts"
import { useAnswer, useLive } from "../data/hooks.ts"
import { to } from "../data/route.ts"
import { nameOf } from "../parts/BindingTabs.tsx"
import { type Column, Mark, Problem, Section, Table, Title, Waiting } from "../parts/layout.tsx"
import { counted, Ends, number, Since } from "../parts/text.tsx"

/** A heartbeat of a newer version tells this one nothing but that its process lives. */
const ifReadable =
  (of: Column<Process>["of"]): Column<Process>["of"] =>
  (process) =>
    process.isReadable ? of(process) : "–"

const processes: ReadonlyArray<Column<Process>> = [
  { title: "Process", of: ({ id, host, pid, isReadable }) => (isReadable ? `${host}, pid ${pid}` : id) },
  { title: "Version", of: ({ version, isReadable }) => (isReadable ? version || "–" : "a newer one") },
  {
    title: "State",
    of: ({ status, lastSeen }) =>
      status === "live" ? (
        <Mark tone="good">live</Mark>
      ) : (
        <>
          <Mark tone="bad">stale</Mark> no answer since <Since at={lastSeen} />
        </>
      )
  },
  {
    title: "Clock",
    of: ifReadable(({ isSkewed, skewMillis }) =>
      isSkewed ? <Mark tone="mild">{`off by ${number(Math.round(skewMillis / 1_000))} s`}</Mark> : "right"
    )
  },
  {
    title: "Holds",
    of: ifReadable(({ control }) =>
      control === "known" ? "known" : <Mark tone={control === "reading" ? "mild" : "bad"}>{control}</Mark>
    )
  },
  {
    title: "Bindings",
    of: ifReadable(({ bindings, omitted }) => number(bindings.length + omitted)),
    isNumber: true
  },
  {
    title: "Stand",
    of: ifReadable(({ bindings }) => number(bindings.reduce((sum, { standing }) => sum + standing.length, 0))),
    isNumber: true,
    isExtra: true
  },
  { title: "Settings", of: ifReadable(({ configHash }) => configHash.slice(0, 8)), isExtra: true }
]

const tierOf = ({ tier }: Pick<Hold, "tier">): string => (tier === undefined ? "" : `, tier ${tier}`)

/** Links those that this process has. */
const bindingOf = (known: ReadonlySet<string>) => (target: Pick<Hold, "key" | "groupId" | "tier">) => (
  <>
    {known.has(`${target.key} ${target.groupId}`) ? (
      <a href={to.binding(target.key)}>{nameOf(target.key)}</a>
    ) : (
      nameOf(target.key)
    )}
    {tierOf(target)}
  </>
)

const holdColumns = (known: ReadonlySet<string>): ReadonlyArray<Column<Hold>> => [
  { title: "Binding", of: bindingOf(known) },
  { title: "Paused by", of: ({ by }) => by },
  { title: "Reason", of: ({ reason }) => reason, isLong: true },
  { title: "Since", of: ({ since }) => <Since at={since} /> },
  { title: "Until", of: ({ until }) => (until === undefined ? "it is released" : <Ends at={until} />) },
  { title: "Group", of: ({ groupId }) => groupId, isExtra: true }
]

const releaseColumns = (known: ReadonlySet<string>): ReadonlyArray<Column<Release>> => [
  { title: "Binding", of: bindingOf(known) },
  { title: "Released by", of: ({ by }) => by },
  { title: "Reason", of: ({ reason }) => reason, isLong: true },
  { title: "At", of: ({ at }) => <Since at={at} /> },
  { title: "Was paused", of: ({ held }) => `by ${held.by}: ${held.reason}`, isLong: true, isExtra: true }
]

const targetOf = ({ key, groupId, tier }: Pick<Hold, "key" | "groupId" | "tier">): string => `${key} ${groupId} ${tier}`

const versionsOf = (all: ReadonlyArray<Process>): string => {
  const versions = [...new Set(all.map(({ version }) => version || "none"))]
  return versions.length > 1 ? `${versions.length} versions: ${versions.join(", ")}` : `Version ${versions.join()}`
}

const Shown = ({ view }: { readonly view: View }) => {
  const { state } = useLive()
  const known = new Set(state?.bindings.map(({ key, groupId }) => `${key} ${groupId}`))
  const stale = view.processes.filter(({ status }) => status === "stale").length
  return (
    <>
      <p class="lead" role="status">
        {counted(view.processes.length, "process", "processes")}, {number(stale)} stale. {versionsOf(view.processes)}
      </p>
      {view.problems.length > 0 && (
        <ul class="sentences" aria-label="What is wrong">
          {view.problems.map(({ topic, setting, found, allowed }) => (
            <li key={`${topic} ${setting}`} class="bad">
              Topic {topic}: {setting} is {found}, allowed is {allowed}
            </li>
          ))}
        </ul>
      )}
      <Table label="Processes" rows={view.processes} columns={processes} keyOf={({ id }) => id} />
      <Section title="Paused in all processes">
        {view.holds.length === 0 ? (
          <p class="dim">Nothing.</p>
        ) : (
          <Table label="Paused in all processes" rows={view.holds} columns={holdColumns(known)} keyOf={targetOf} />
        )}
      </Section>
      {view.releases.length > 0 && (
        <Section title="Last released">
          <Table label="Last released" rows={view.releases} columns={releaseColumns(known)} keyOf={targetOf} />
        </Section>
      )}
    </>
  )
}

export const Fleet = () => {
  const { value, refusal } = useAnswer<View>("fleet", () => 3_000)
  return (
    <>
      <Title name="Fleet">Fleet</Title>
      {value === undefined ? (
        <Waiting refusal={refusal} />
      ) : (
        <>
          <Problem refusal={refusal} />
          <Shown view={value} />
        </>
      )}
    </>
  )
}
