/** The dead events that died for one reason, and the way to deal with them. */
import type { Groups, Page } from "../../src/DeadEventAnswers.ts"
import { part } from "../data/api.ts"
import { useAnswer, useOutboxPermissions } from "../data/hooks.ts"
import { to } from "../data/route.ts"
import { EventPlan } from "../parts/EventPlan.tsx"
import { Facts, Section, Table, Title, Waiting } from "../parts/layout.tsx"
import { counted, number, Since } from "../parts/text.tsx"
import { nameOf } from "./Outbox.tsx"

const pageSize = 20

const Events = ({ group }: { readonly group: string }) => {
  const { value, refusal } = useAnswer<Page>(`outbox/dead/events?group=${part(group)}&limit=${pageSize}`)
  if (value === undefined) return <Waiting refusal={refusal} />
  return (
    <>
      <Table
        label="Events of the group"
        rows={value.events}
        keyOf={({ eventId }) => eventId}
        columns={[
          { title: "Event", of: ({ eventId }) => <a href={to.event(eventId)}>{eventId}</a>, isLong: true },
          { title: "Aggregate", of: ({ aggregateId }) => aggregateId ?? "–", isLong: true, isExtra: true },
          { title: "Died", of: ({ diedAt }) => <Since at={diedAt} /> },
          { title: "Failed before", of: ({ attempts }) => number(attempts), isNumber: true, isExtra: true }
        ]}
      />
      {value.next !== undefined && <p class="dim">The oldest {pageSize} are shown.</p>}
    </>
  )
}

export const EventGroup = ({ fingerprint }: { readonly fingerprint: string }) => {
  const may = useOutboxPermissions()
  const { value, refusal } = useAnswer<Groups>("outbox/dead/groups")
  const group = value?.groups.find((each) => each.fingerprint === fingerprint)
  const name = group === undefined ? "One reason" : nameOf(group)
  return (
    <>
      <Title name={`${name} · Outbox`}>Outbox · {name}</Title>
      {value === undefined && <Waiting refusal={refusal} />}
      {value !== undefined && group === undefined && <p>No dead event has this reason any more.</p>}
      {group !== undefined && (
        <>
          <p class="lead">{counted(group.count, "event is dead", "events are dead")}.</p>
          <Facts
            facts={[
              ["Message", group.message],
              ["Event type", group.eventType],
              ["First", <Since key="first" at={group.first} />],
              ["Last", <Since key="last" at={group.last} />],
              ["Name of the group", group.fingerprint]
            ]}
          />
          <EventPlan fingerprint={fingerprint} may={may} />
          <Section title="Events">
            <Events group={fingerprint} />
          </Section>
        </>
      )}
    </>
  )
}
