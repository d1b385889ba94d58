/** One dead event: its facts, the reason of its death, and its content for callers who may see that. */
import type { Done, Event } from "../../src/DeadEventAnswers.ts"
import { part, post } from "../data/api.ts"
import { useAnswer, useOutboxPermissions } from "../data/hooks.ts"
import { go, to } from "../data/route.ts"
import { Ask } from "../parts/Ask.tsx"
import { announce } from "../parts/announce.tsx"
import { Contents } from "../parts/Contents.tsx"
import { Facts, Section, Title, Waiting } from "../parts/layout.tsx"
import { number, Since } from "../parts/text.tsx"

const factsOf = (event: Event) =>
  [
    ["Failed with", event.errorClass],
    ["Died", <Since key="died" at={event.diedAt} />],
    ["Failed before", number(event.attempts)],
    ["Event type", event.eventType],
    ["Aggregate", [event.aggregateType, event.aggregateId].filter((each) => each !== undefined).join(" ")],
    ["Tenant", event.tenantId],
    ["Happened", event.occurredAt === undefined ? undefined : <Since key="occurred" at={event.occurredAt} />],
    ["Written", <Since key="created" at={event.createdAt} />],
    ["Type of the payload", event.contentType],
    ["Can be decoded", event.decodable ? "yes" : "no"],
    ["Cannot be decoded", event.unreadable],
    [
      "Reason group",
      <a key="group" href={to.eventGroup(event.group)}>
        {event.group}
      </a>
    ]
  ] as const

const Commands = ({ id }: { readonly id: string }) => {
  const may = useOutboxPermissions()
  if (!may("replay") && !may("discard")) return null
  const act = (verb: Done["action"], done: string) => async (reason: string) => {
    await post<Done>(`outbox/dead/events/${part(id)}/${verb}?reason=${part(reason)}`)
    announce(`Event ${id} is ${done}.`)
    go(to.outbox)
  }
  return (
    <p class="buttons">
      {may("replay") && (
        <Ask verb="Replay" question={`Replay event ${id}?`} asksWhy act={act("replay", "replayed")}>
          <p>The outbox delivers it again.</p>
        </Ask>
      )}
      {may("discard") && (
        <Ask verb="Delete" question={`Delete event ${id} for good?`} asksWhy isDanger act={act("discard", "deleted")}>
          <p>Nothing brings it back.</p>
        </Ask>
      )}
    </p>
  )
}

export const DeadEvent = ({ id }: { readonly id: string }) => {
  const { value, refusal } = useAnswer<Event>(`outbox/dead/events/${part(id)}`)
  return (
    <>
      <Title name={`Event ${id} · Outbox`}>Outbox · Event {id}</Title>
      {value === undefined ? (
        <Waiting refusal={refusal} />
      ) : (
        <>
          <Facts facts={factsOf(value)} />
          <Commands id={id} />
          {value.lastError !== undefined && (
            <Section title="Why it died">
              <pre>{value.lastError}</pre>
            </Section>
          )}
          {value.payload === undefined ? (
            <p class="dim">Aggregate, headers and payload are shown with the permission view-payload.</p>
          ) : (
            <Contents payload={value.payload} />
          )}
        </>
      )}
    </>
  )
}
