/** The dead letters of a binding by the reason of their failure. */
import type { Group, Groups } from "../../src/DeadLetterAnswers.ts"
import { part } from "../data/api.ts"
import { useAnswer } from "../data/hooks.ts"
import { to } from "../data/route.ts"
import { BindingTabs } from "../parts/BindingTabs.tsx"
import { Bars } from "../parts/chart.tsx"
import { type Column, ReadAgain, Table, Waiting } from "../parts/layout.tsx"
import { counted, number, Since } from "../parts/text.tsx"

/** The trend in words. */
export const trendOf = ({ trend }: Pick<Group, "trend">): string =>
  `${counted(
    trend.reduce((sum, each) => sum + each, 0),
    "letter"
  )} in the last 24 hours, ${number(trend.at(-1) ?? 0)} of them in the last one`

const columnsOf = (key: string): ReadonlyArray<Column<Group>> => [
  {
    title: "Failed with",
    of: ({ fingerprint, sourceTopic, exceptionClass, frame, message }) => (
      <>
        <a href={to.group(key, fingerprint, sourceTopic)}>{exceptionClass}</a>
        {sourceTopic !== undefined && <span class="line">{sourceTopic}</span>}
        {message !== undefined && message !== "" && <span class="line">{message}</span>}
        {frame !== undefined && <span class="line dim">{frame}</span>}
      </>
    ),
    isLong: true
  },
  { title: "Waiting", of: ({ count }) => number(count), isNumber: true },
  { title: "Came back", of: ({ cameBack }) => number(cameBack), isNumber: true, isExtra: true },
  { title: "Dealt with", of: ({ states }) => number(states.dealtWith), isNumber: true, isExtra: true },
  { title: "Last", of: ({ last }) => <Since at={last} /> },
  { title: "24 hours", of: (group) => <Bars values={group.trend} label={trendOf(group)} />, isExtra: true }
]

const Report = ({ binding, report }: { readonly binding: string; readonly report: Groups }) => {
  const { groups, other, foreign, unreadable } = report
  const waiting = groups.reduce((sum, { count }) => sum + count, 0)
  return (
    <>
      <p class="lead">
        {waiting === 0
          ? "No dead letter waits."
          : `${counted(waiting, "dead letter waits", "dead letters wait")}, for ${counted(
              groups.filter(({ count }) => count > 0).length,
              "reason"
            )}.`}
      </p>
      {groups.length > 0 && (
        <Table
          label="Groups of dead letters"
          rows={groups}
          columns={columnsOf(binding)}
          keyOf={({ fingerprint, originalTopic, sourceTopic }) => `${fingerprint} ${originalTopic} ${sourceTopic}`}
        />
      )}
      {other > 0 && <p>{counted(other, "letter")} of further groups.</p>}
      {foreign > 0 && <p>{counted(foreign, "letter")} of other consumer groups, which stay.</p>}
      {unreadable > 0 && <p>{counted(unreadable, "letter")} at most in batches that cannot be read.</p>}
    </>
  )
}

export const Failures = ({ binding }: { readonly binding: string }) => {
  const { value, refusal, reload } = useAnswer<Groups>(`bindings/${part(binding)}/dlt/groups`)
  return (
    <>
      <BindingTabs binding={binding} tab="Failures" />
      {value === undefined ? (
        <Waiting refusal={refusal} />
      ) : (
        <>
          <Report binding={binding} report={value} />
          <p class="dim">
            Read <Since at={value.read} />
          </p>
          <ReadAgain reload={reload} />
        </>
      )}
    </>
  )
}
