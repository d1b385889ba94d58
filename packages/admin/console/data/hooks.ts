/** The hooks of the pages. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import type { Permissions } from "../../src/Answers.ts"
import { get, part, Refusal } from "./api.ts"
import { current, type Live, subscribe } from "./live.ts"

export type Permission = Permissions["permissions"][number]

/** An answer that was asked for, and the refusal of the last time. */
export interface Asked<A> {
  readonly value?: A
  readonly refusal?: Refusal
  readonly reload: () => void
}

/**
 * Asks when the page opens, and again after `everyMillis` as long as there are some: it may depend on the last answer. Undefined for `path` asks nothing.
 */
export const useAnswer = <A>(
  path: string | undefined,
  everyMillis: (last: A | undefined) => number | undefined = () => undefined
): Asked<A> => {
  const [asked, setAsked] = useState<{ readonly value?: A; readonly refusal?: Refusal }>({})
  const [round, setRound] = useState(0)
  const every = useRef(everyMillis)
  every.current = everyMillis
  useEffect(() => {
    let isOver = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const ask = async (): Promise<void> => {
      let last: A | undefined
      try {
        last = await get<A>(path ?? "")
        if (!isOver) setAsked({ value: last })
      } catch (error) {
        if (!isOver) setAsked((before) => ({ ...before, refusal: asRefusal(error) }))
      }
      const wait = every.current(last)
      if (!isOver && wait !== undefined) timer = setTimeout(() => void ask(), wait)
    }
    if (path !== undefined) void ask()
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [path, round])
  return { ...asked, reload: useCallback(() => setRound((each) => each + 1), []) }
}

export const asRefusal = (error: unknown): Refusal =>
  error instanceof Refusal ? error : new Refusal(0, "Error", error instanceof Error ? error.message : String(error))

const useAllowed = (key: string): Permissions | undefined =>
  useAnswer<Permissions>(`bindings/${part(key)}/permissions`).value

/** What the caller may do with a binding: nothing while that is not known. */
export const usePermissions = (key: string): ((permission: Permission) => boolean) => {
  const value = useAllowed(key)
  return (permission) => value?.permissions.includes(permission) ?? false
}

/** The permissions of the caller on the outbox: none while they are not known. */
export const useOutboxPermissions = (): ((permission: Permission) => boolean) => {
  const { value } = useAnswer<Pick<Permissions, "permissions">>("outbox/permissions")
  return (permission) => value?.permissions.includes(permission) ?? false
}

/** The names of the binding's transforms that the caller may use. */
export const useTransforms = (key: string): ReadonlyArray<string> => useAllowed(key)?.transforms ?? []

/** Whether the caller may command all processes about a binding. */
export const useMayCommandFleet = (key: string): boolean => {
  const value = useAllowed(key)
  return value?.hasFleet === true && value.permissions.includes("operate")
}

export const useLive = (): Live => {
  const [live, setLive] = useState(current)
  useEffect(() => {
    setLive(current())
    return subscribe(setLive)
  }, [])
  return live
}

/** A change that is on its way, once at a time, and the refusal of the last one. */
export const useChange = (): {
  readonly isBusy: boolean
  readonly refusal: Refusal | undefined
  readonly run: (change: () => Promise<void>) => void
} => {
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const run = (change: () => Promise<void>): void => {
    if (isBusy) return
    setBusy(true)
    setRefusal(undefined)
    change()
      .catch((error: unknown) => setRefusal(asRefusal(error)))
      .finally(() => setBusy(false))
  }
  return { isBusy, refusal, run }
}
