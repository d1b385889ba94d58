/** The dead events of the program's outbox by the reason of their failure. */
import type { Group, Groups } from "../../src/DeadEventAnswers.ts"
import { useAnswer } from "../data/hooks.ts"
import { to } from "../data/route.ts"
import { type Column, ReadAgain, Table, Title, Waiting } from "../parts/layout.tsx"
import { counted, number, Since } from "../parts/text.tsx"

/** A text that is nothing but a word may be what somebody has thrown, so the API hides it as it hides messages. */
export const nameOf = ({ errorClass }: Pick<Group, "errorClass">): string => errorClass ?? "An error that is hidden"

const columns: ReadonlyArray<Column<Group>> = [
  {
    title: "Failed with",
    of: (group) => (
      <>
        <a href={to.eventGroup(group.fingerprint)}>{nameOf(group)}</a>
        {group.message !== undefined && <span class="line">{group.message}</span>}
      </>
    ),
    isLong: true
  },
  { title: "Event type", of: ({ eventType }) => eventType, isLong: true },
  { title: "Dead", of: ({ count }) => number(count), isNumber: true },
  { title: "First", of: ({ first }) => <Since at={first} />, isExtra: true },
  { title: "Last", of: ({ last }) => <Since at={last} /> }
]

const Report = ({ groups, other }: Groups) => {
  const count = groups.reduce((sum, each) => sum + each.count, other)
  return (
    <>
      <p class="lead">
        {count === 0
          ? "No event is dead."
          : `${counted(count, "event is dead", "events are dead")}, for ${counted(groups.length, "reason")}.`}
      </p>
      {groups.length > 0 && (
        <Table
          label="Groups of dead events"
          rows={groups}
          columns={columns}
          keyOf={({ fingerprint, eventType }) => `${fingerprint} ${eventType}`}
        />
      )}
      {other > 0 && <p>{counted(other, "event")} of further groups.</p>}
    </>
  )
}

export const Outbox = () => {
  const { value, refusal, reload } = useAnswer<Groups>("outbox/dead/groups")
  return (
    <>
      <Title name="Outbox">Outbox</Title>
      {value !== undefined && <Report {...value} />}
      {value === undefined && refusal?.tag === "OutboxOff" && <p>The program shows no outbox to the console.</p>}
      {value === undefined && refusal?.tag !== "OutboxOff" && <Waiting refusal={refusal} />}
      {value !== undefined && <ReadAgain reload={reload} />}
    </>
  )
}
