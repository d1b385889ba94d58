/** The dead letters that failed for one reason: why, samples, and the way to repair them. */
import type { Group as GroupAnswer, Groups, Letter, Page } from "../../src/DeadLetterAnswers.ts"
import { ofTopic, part } from "../data/api.ts"
import { useAnswer, usePermissions } from "../data/hooks.ts"
import { to } from "../data/route.ts"
import { BindingTabs } from "../parts/BindingTabs.tsx"
import { Causes } from "../parts/Causes.tsx"
import { Bars } from "../parts/chart.tsx"
import { Facts, Section, Table, Waiting } from "../parts/layout.tsx"
import { Repair } from "../parts/Repair.tsx"
import { counted, number, Since } from "../parts/text.tsx"
import { trendOf } from "./Failures.tsx"

const factsOf = (group: GroupAnswer) =>
  [
    ["Message", group.message],
    ["Where in the code", group.frame],
    ["Topic", group.originalTopic ?? "unknown: no header says where the records were first"],
    ["First", <Since key="first" at={group.first} />],
    ["Last", <Since key="last" at={group.last} />],
    ["Came back after a replay", number(group.cameBack)],
    ["Replayed too often", number(group.states.exhausted)],
    ["Dealt with", `${number(group.states.dealtWith)}, ${number(group.discarded)} of them given up`],
    ["Last 24 hours", <Bars key="trend" values={group.trend} label={trendOf(group)} />],
    ["Name of the group", group.fingerprint]
  ] as const

const pageSize = 20

interface OfTopic {
  readonly binding: string
  /** Of a binding of several topics. */
  readonly topic: string | undefined
}

const Letters = ({ binding, topic, group }: OfTopic & { readonly group: string }) => {
  const { value, refusal } = useAnswer<Page>(
    ofTopic(`bindings/${part(binding)}/dlt/records?group=${part(group)}&limit=${pageSize}`, topic)
  )
  if (value === undefined) return <Waiting refusal={refusal} />
  return (
    <>
      <Table
        label="Letters of the group"
        rows={value.letters}
        keyOf={({ position }) => position}
        columns={[
          { title: "Letter", of: ({ position }) => <a href={to.record(binding, position, topic)}>{position}</a> },
          { title: "State", of: ({ state }) => state },
          { title: "Key", of: ({ key }) => key ?? "–", isLong: true, isExtra: true },
          { title: "Dead-lettered", of: ({ deadLettered }) => <Since at={deadLettered} /> },
          { title: "Attempts", of: ({ totalAttempts }) => number(totalAttempts), isNumber: true, isExtra: true },
          { title: "Replays", of: ({ replayCount }) => number(replayCount), isNumber: true, isExtra: true }
        ]}
      />
      {value.next !== undefined && <p class="dim">The newest {pageSize} are shown.</p>}
    </>
  )
}

/** The causes of the newest letter, where the caller may see them. */
const Cause = ({ binding, topic, position }: OfTopic & { readonly position: string }) => {
  const { value } = useAnswer<Letter>(ofTopic(`bindings/${part(binding)}/dlt/records/${part(position)}`, topic))
  return value === undefined ? null : <Causes letter={value} />
}

export const Group = ({ binding, topic, fingerprint }: OfTopic & { readonly fingerprint: string }) => {
  const may = usePermissions(binding)
  const { value, refusal, reload } = useAnswer<Groups>(ofTopic(`bindings/${part(binding)}/dlt/groups`, topic))
  const group = value?.groups.find((each) => each.fingerprint === fingerprint)
  const newest = group?.samples[0]
  return (
    <>
      <BindingTabs binding={binding} tab="Failures" detail={group?.exceptionClass ?? "One reason"} />
      {value === undefined && <Waiting refusal={refusal} />}
      {value !== undefined && group === undefined && <p>No dead letter has this reason any more.</p>}
      {group !== undefined && (
        <>
          <p class="lead">{counted(group.count, "dead letter waits", "dead letters wait")}.</p>
          <Facts facts={factsOf(group)} />
          {newest !== undefined && may("view-payload") && <Cause binding={binding} topic={topic} position={newest} />}
          <Repair
            binding={binding}
            topic={topic}
            select={{ groups: [fingerprint] }}
            may={may}
            canRestore={group.discarded > 0}
            changed={reload}
          />
          <Section title="Letters">
            <Letters binding={binding} topic={topic} group={fingerprint} />
          </Section>
        </>
      )}
    </>
  )
}
