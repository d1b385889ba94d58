/** The frame of all pages: where they are, how they are kept up to date, and who asks. */
import { useEffect, useState } from "preact/hooks"
import { token } from "./data/api.ts"
import { useLive } from "./data/hooks.ts"
import { follow, type Live } from "./data/live.ts"
import { type Route, routeOf, to } from "./data/route.ts"
import { Audit } from "./pages/Audit.tsx"
import { Binding } from "./pages/Binding.tsx"
import { DeadEvent } from "./pages/DeadEvent.tsx"
import { EventGroup } from "./pages/EventGroup.tsx"
import { EventRun } from "./pages/EventRun.tsx"
import { Failures } from "./pages/Failures.tsx"
import { Fleet } from "./pages/Fleet.tsx"
import { Group } from "./pages/Group.tsx"
import { Now } from "./pages/Now.tsx"
import { Outbox } from "./pages/Outbox.tsx"
import { Parked } from "./pages/Parked.tsx"
import { Record } from "./pages/Record.tsx"
import { Run } from "./pages/Run.tsx"
import { Runs } from "./pages/Runs.tsx"
import { SignIn } from "./pages/SignIn.tsx"
import { Announcements } from "./parts/announce.tsx"
import { Title } from "./parts/layout.tsx"

const useRoute = (): Route => {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const changed = () => setHash(location.hash)
    addEventListener("hashchange", changed)
    return () => removeEventListener("hashchange", changed)
  }, [])
  return routeOf(hash)
}

/** A page of another binding or record begins anew. */
const Page = ({ route }: { readonly route: Route }) => {
  switch (route.page) {
    case "now":
      return <Now />
    case "audit":
      return <Audit />
    case "fleet":
      return <Fleet />
    case "outbox":
      return <Outbox />
    case "eventGroup":
      return <EventGroup key={route.id} fingerprint={route.id} />
    case "event":
      return <DeadEvent key={route.id} id={route.id} />
    case "eventRun":
      return <EventRun key={route.id} id={route.id} />
    case "binding":
      return <Binding key={route.key} binding={route.key} />
    case "failures":
      return <Failures key={route.key} binding={route.key} />
    case "group":
      return (
        <Group
          key={`${route.key} ${route.id} ${route.topic}`}
          binding={route.key}
          fingerprint={route.id}
          topic={route.topic}
        />
      )
    case "record":
      return (
        <Record
          key={`${route.key} ${route.id} ${route.topic}`}
          binding={route.key}
          position={route.id}
          topic={route.topic}
        />
      )
    case "parked":
      return <Parked key={route.key} binding={route.key} />
    case "runs":
      return <Runs key={route.key} binding={route.key} />
    case "run":
      return <Run key={`${route.key} ${route.id}`} binding={route.key} id={route.id} />
    default:
      return (
        <>
          <Title name="No such page">There is no such page</Title>
          <p>
            <a href={to.now}>Go to what is going on now</a>
          </p>
        </>
      )
  }
}

/** Where a page is the outbox, or lies below it. */
const outboxAt: Partial<{ readonly [Each in Route["page"]]: "page" | "true" }> = {
  outbox: "page",
  eventGroup: "true",
  event: "true",
  eventRun: "true"
}

const kept = { stream: "Live", polling: "Every few seconds", lost: "No answer" } as const

const keptAs = ({ by, state, refusal }: Live): string => {
  if (state === undefined && refusal === undefined) return "Connecting"
  return refusal?.status === 401 || refusal?.status === 403 ? "Not live" : kept[by]
}

const Kept = () => {
  const live = useLive()
  return (
    <p class={`kept ${live.by}`} role="status">
      {keptAs(live)}
    </p>
  )
}

export const App = () => {
  const [session, setSession] = useState(0)
  const route = useRoute()
  const { refusal, state } = useLive()
  useEffect(() => {
    const ended = new AbortController()
    void follow(ended.signal)
    return () => ended.abort()
  }, [session])
  const begin = (value: string) => {
    token.write(value)
    setSession((before) => before + 1)
  }
  const isStranger = refusal?.status === 401
  return (
    <>
      <header>
        <button type="button" class="skip" onClick={skip}>
          Skip to the content
        </button>
        <nav aria-label="Console">
          <a href={to.now} aria-current={route.page === "now" ? "page" : undefined}>
            Event bus
          </a>{" "}
          <a href={to.fleet} aria-current={route.page === "fleet" ? "page" : undefined}>
            Fleet
          </a>
          <a href={to.outbox} aria-current={outboxAt[route.page]}>
            Outbox
          </a>
          <a href={to.audit} aria-current={route.page === "audit" ? "page" : undefined}>
            Audit
          </a>
        </nav>
        <Kept />
        {token.read() !== "" && (
          <button type="button" onClick={() => begin("")}>
            Sign out
          </button>
        )}
      </header>
      <main id="main">
        {isStranger || (state === undefined && refusal?.status === 403 && route.page === "now") ? (
          <SignIn refusal={refusal} begin={begin} />
        ) : (
          <Page key={session} route={route} />
        )}
      </main>
      <Announcements />
    </>
  )
}

const skip = (): void => document.querySelector<HTMLElement>("main h1")?.focus()
