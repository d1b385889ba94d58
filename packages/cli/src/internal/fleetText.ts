/** The fleet, and commands to it, as text. */
import type * as FleetAnswers from "@eventbus/admin/FleetAnswers"
import { LogFormat } from "@eventbus/core"
import { columns, counted } from "./text.ts"

type Target = Pick<FleetAnswers.Hold, "key" | "groupId" | "tier">

const nameOf = ({ key, groupId, tier }: Target): string =>
  `${key} of group ${groupId}${tier === undefined ? "" : `, tier ${tier}`}`

const endsOf = (until: string | undefined): string => (until === undefined ? "" : ` until ${until}`)

const processText = (process: FleetAnswers.Process): ReadonlyArray<string> => {
  const { host, id, pid, version, status, lastSeen, isSkewed, skewMillis, isReadable, control, bindings, omitted } =
    process
  if (!isReadable) return [id, "", "a newer version", status, `seen ${lastSeen}`]
  return [
    host,
    `pid ${pid}`,
    version === "" ? "no version" : version,
    status === "live" ? "live" : "stale: no answer since",
    `${status === "live" ? "seen " : ""}${lastSeen}`,
    counted(bindings.length + omitted, "binding"),
    isSkewed ? `its clock is off by ${skewMillis} ms` : "",
    control === "known" ? "" : `does not know the holds: ${control}`
  ]
}

const versionsOf = (processes: ReadonlyArray<FleetAnswers.Process>): string => {
  const counts = new Map<string, number>()
  for (const { version } of processes) counts.set(version, (counts.get(version) ?? 0) + 1)
  return Array.from(counts, ([version, count]) => `${count} of ${version === "" ? "no version" : version}`).join(", ")
}

/** Nothing in it begins another line. */
const lines = (...all: ReadonlyArray<string>): string => all.map(LogFormat.oneLine).join("\n")

export const viewText = ({ processes, holds, releases, problems }: FleetAnswers.View): string => {
  const stale = processes.filter(({ status }) => status === "stale").length
  return lines(
    `${counted(processes.length, "process", "processes")}, ${stale} stale: ${versionsOf(processes)}`,
    ...columns(processes.map(processText)),
    ...holds.map(
      (hold) => `held: ${nameOf(hold)} by ${hold.by} since ${hold.since}${endsOf(hold.until)}: ${hold.reason}`
    ),
    ...releases.map(
      (release) =>
        `released: ${nameOf(release)} by ${release.by} at ${release.at}: ${release.reason} (held by ${release.held.by}: ${release.held.reason})`
    ),
    ...problems.map(
      ({ topic, setting, found, allowed }) => `problem: topic '${topic}': ${setting} is ${found}, allowed is ${allowed}`
    )
  )
}

const doneOf = ({ verb, wasHeld, until }: FleetAnswers.Commanded): string => {
  if (verb === "pause") return `is held in the whole fleet${endsOf(until)}`
  if (verb === "resume") return wasHeld === true ? "is released" : "was not held"
  return `is told to ${verb} (command, without a hold)`
}

export const commandedText = (commanded: FleetAnswers.Commanded): string => {
  const { answers, missing } = commanded
  const asked = answers.length + missing.length
  return lines(
    `${nameOf(commanded)} ${doneOf(commanded)}`,
    asked === 0 ? "no live process has it" : `${answers.length} of ${counted(asked, "process", "processes")} answered`
  )
}

/** The processes that did not do it, each in a line; empty when every process has. */
export const undone = ({ answers, missing }: FleetAnswers.Commanded): string =>
  lines(
    ...missing.map(
      ({ process, host, pid, accepted }) => `${accepted ? "not done" : "no answer"}: ${host}, pid ${pid} (${process})`
    ),
    ...answers.flatMap(({ state, process, host, error }) =>
      state === "done" ? [] : [`${state}: ${host} (${process})${error === undefined ? "" : `: ${error}`}`]
    )
  )
