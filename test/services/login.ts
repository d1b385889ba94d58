/**
 * A server that tests log in to. A variable of the environment names it, as `host:port` or as a URL with user, password and database. A service is usable
 * when logging in works: an open port alone says nothing of a developer's own server, which may want a password or lack the database.
 */
import { Effect, Redacted } from "effect"

export interface Login {
  readonly host: string
  readonly port: number
  /** Empty: the server's default user. */
  readonly username: string
  readonly password?: Redacted.Redacted
  readonly database: string
}

/** The server that `variable` names. Parts that it leaves out come from `defaults`. */
export const loginFrom = (variable: string, defaults: Login): Login => {
  const text = process.env[variable] ?? ""
  const url = URL.parse(text.includes("://") ? text : `tcp://${text === "" ? "_" : text}`)
  if (url === null) throw new Error(`${variable}: expected host:port or a URL, found '${text}'`)
  const { hostname, port, username, password, pathname } = url
  return {
    host: hostname === "" || hostname === "_" ? defaults.host : hostname,
    port: port === "" ? defaults.port : Number(port),
    username: username === "" ? defaults.username : decodeURIComponent(username),
    database: pathname.length > 1 ? decodeURIComponent(pathname.slice(1)) : defaults.database,
    ...(password !== "" && { password: Redacted.make(decodeURIComponent(password)) })
  }
}

/** The login as a URL, such as `postgres://user:password@host:5432/database`. */
export const urlOf = (scheme: string, { host, port, username, password, database }: Login, query = ""): string => {
  const secret = password === undefined ? "" : `:${encodeURIComponent(Redacted.value(password))}`
  const user = username === "" && secret === "" ? "" : `${encodeURIComponent(username)}${secret}@`
  return `${scheme}://${user}${host}:${port}/${database}${query}`
}

/** A service, and how to name another server for it. */
export interface Service {
  readonly name: string
  readonly variable: string
  /** A value of the variable. */
  readonly example: string
  readonly login: Login
}

/** The message of the innermost cause, which is the server's own. */
const innermost = (error: unknown): string => {
  if (typeof error !== "object" || error === null) return String(error)
  const inner: unknown = Reflect.get(error, "cause") ?? Reflect.get(error, "reason")
  if (typeof inner === "object" && inner !== null) return innermost(inner)
  return error instanceof Error ? error.message || error.name : String(inner ?? error)
}

/** Logs in. undefined when that works; otherwise one line that says why not, and what to set. */
export const problemOf = (
  { name, variable, example, login }: Service,
  logIn: Effect.Effect<unknown, unknown>
): Promise<string | undefined> =>
  Effect.runPromise(
    logIn.pipe(
      Effect.timeoutOrElse({ duration: "3 seconds", orElse: () => Effect.fail("no answer within 3 seconds") }),
      Effect.catchDefect((defect) => Effect.fail(defect)),
      Effect.match({
        onSuccess: () => undefined,
        onFailure: (error) =>
          `${name} at ${login.host}:${login.port} cannot be used (${innermost(error)}): set ${variable}=${example}`
      })
    )
  )
