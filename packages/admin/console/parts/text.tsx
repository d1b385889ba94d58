/** Times, numbers and counts in words. */
import { useEffect, useState } from "preact/hooks"

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** Such as `6 min`. */
export const duration = (millis: number): string => {
  const whole = Math.max(0, millis)
  if (whole < minute) return `${Math.floor(whole / second)} s`
  if (whole < hour) return `${Math.floor(whole / minute)} min`
  if (whole < 2 * day) return `${Math.floor(whole / hour)} h`
  return `${Math.floor(whole / day)} days`
}

const format = new Intl.NumberFormat("en")

export const number = (value: number): string => format.format(value)

/** Such as `1 record` and `2 records`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`

const two = (value: number): string => String(value).padStart(2, "0")

/** In the time zone of the reader: the time of today, or date and time. */
const shortTime = (at: Date, now: Date): string => {
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`
  if (at.toDateString() === now.toDateString()) return time
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`
}

/** The present, again every ten seconds. */
const useNow = (): Date => {
  const [now, setNow] = useState(() => new Date())
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), 10 * second)
    return () => clearInterval(timer)
  }, [])
  return now
}

/** A time, and how long ago it is. */
export const Since = ({ at }: { readonly at: string | undefined }) => {
  const now = useNow()
  if (at === undefined) return <span>unknown</span>
  const time = new Date(at)
  return (
    <time dateTime={at} title={at}>
      {shortTime(time, now)} ({duration(now.getTime() - time.getTime())} ago)
    </time>
  )
}

/** A time to come, and how long it is until then. */
export const Ends = ({ at }: { readonly at: string }) => {
  const now = useNow()
  const time = new Date(at)
  return (
    <time dateTime={at} title={at}>
      {shortTime(time, now)} (in {duration(time.getTime() - now.getTime())})
    </time>
  )
}

/** How long it is to a time. */
export const Until = ({ at }: { readonly at: string }) => {
  const left = new Date(at).getTime() - useNow().getTime()
  return (
    <time dateTime={at} title={at}>
      {left <= 0 ? "no longer: make it anew" : duration(left)}
    </time>
  )
}

/** The topics of a binding, or of one of its containers. */
export const topicsOf = ({
  topic,
  topics = [topic]
}: {
  readonly topic: string
  readonly topics?: ReadonlyArray<string>
}) => topics.join(", ")
