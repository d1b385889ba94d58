/** The page that is shown, by the part of the address behind `#`: the server sees one page alone. */

export type Route =
  | { readonly page: "now" | "audit" | "fleet" | "outbox" }
  | { readonly page: "binding" | "failures" | "runs" | "parked"; readonly key: string }
  /** `topic`: of a binding of several topics, the one that the dead letters are of. */
  | { readonly page: "group" | "record" | "run"; readonly key: string; readonly id: string; readonly topic?: string }
  | { readonly page: "eventGroup" | "event" | "eventRun"; readonly id: string }
  | { readonly page: "unknown" }

const ofOutbox = { groups: "eventGroup", events: "event", runs: "eventRun" } as const

const words = { failures: "group", records: "record", runs: "run" } as const

export const routeOf = (hash: string): Route => {
  const [, first, key, word, id, topic, more] = hash.replace(/^#/, "").split("/").map(decoded)
  if (first === undefined || first === "") return { page: "now" }
  if (first === "audit" && key === undefined) return { page: "audit" }
  if (first === "fleet" && key === undefined) return { page: "fleet" }
  if (first === "outbox") return outboxRouteOf(key, word, id)
  if (first !== "bindings" || key === undefined || key === "" || more !== undefined) return { page: "unknown" }
  if (word === undefined) return { page: "binding", key }
  if (id === undefined) return isPage(word) ? { page: word, key } : { page: "unknown" }
  if (topic !== undefined && word === "runs") return { page: "unknown" }
  return word === "failures" || word === "records" || word === "runs"
    ? { page: words[word], key, id, ...(topic === undefined ? {} : { topic }) }
    : { page: "unknown" }
}

const isPage = (word: string): word is "failures" | "runs" | "parked" =>
  word === "failures" || word === "runs" || word === "parked"

const outboxRouteOf = (what?: string, id?: string, more?: string): Route => {
  if (what === undefined) return { page: "outbox" }
  const isKnown = what === "groups" || what === "events" || what === "runs"
  return isKnown && id !== undefined && more === undefined ? { page: ofOutbox[what], id } : { page: "unknown" }
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const encode = encodeURIComponent

const behind = (topic: string | undefined): string => (topic === undefined ? "" : `/${encode(topic)}`)

export const to = {
  now: "#/",
  audit: "#/audit",
  fleet: "#/fleet",
  outbox: "#/outbox",
  eventGroup: (fingerprint: string) => `#/outbox/groups/${encode(fingerprint)}`,
  event: (id: string) => `#/outbox/events/${encode(id)}`,
  eventRun: (id: string) => `#/outbox/runs/${encode(id)}`,
  binding: (key: string) => `#/bindings/${encode(key)}`,
  failures: (key: string) => `#/bindings/${encode(key)}/failures`,
  group: (key: string, fingerprint: string, topic?: string) =>
    `#/bindings/${encode(key)}/failures/${encode(fingerprint)}${behind(topic)}`,
  record: (key: string, position: string, topic?: string) =>
    `#/bindings/${encode(key)}/records/${encode(position)}${behind(topic)}`,
  parked: (key: string) => `#/bindings/${encode(key)}/parked`,
  runs: (key: string) => `#/bindings/${encode(key)}/runs`,
  run: (key: string, id: string) => `#/bindings/${encode(key)}/runs/${encode(id)}`
}

export const go = (hash: string): void => {
  location.hash = hash
}
