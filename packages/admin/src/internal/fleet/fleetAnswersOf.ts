/** Turns what the core says about a fleet into answers that JSON can hold. */
import type { FleetView } from "@eventbus/core"
import type * as FleetAnswers from "../../FleetAnswers.ts"
import { given, holdOf, isDate, isoOf, keyOf } from "../answersOf.ts"

type Target = Pick<FleetView.Hold, "binding" | "cluster" | "groupId" | "tier">

export const targetOf = ({ binding: name, cluster, groupId, tier }: Target) => ({
  key: keyOf({ name, cluster }),
  ...{ name, cluster, groupId },
  ...given("tier", tier)
})

/** Anything can lie in the topic, such as a time that no date can hold. */
const timeOf = (millis: number): string => isoOf(isDate(millis) ? millis : 0)

const ofHold = (hold: FleetView.Hold): FleetAnswers.Hold => ({ ...targetOf(hold), ...holdOf(hold) })

const releaseOf = ({ held, ...release }: FleetView.Release): FleetAnswers.Release => ({
  ...targetOf(release),
  ...{ by: release.by, reason: release.reason },
  at: timeOf(release.atMillis),
  held: { by: held.by, reason: held.reason, since: timeOf(held.sinceMillis) }
})

const bindingOf = (binding: FleetView.FleetBinding): FleetAnswers.ProcessBinding => {
  const { name, cluster, groupId, state, pausedBy, partitions, lag, inFlight, standing } = binding
  return {
    ...{ key: keyOf({ name, cluster }), groupId, state, pausedBy, partitions, inFlight, standing },
    ...given("lag", partitions === 0 ? undefined : lag)
  }
}

const processOf = (process: FleetView.FleetProcess): FleetAnswers.Process => {
  const { lastSeenMillis, leaseEndsMillis, bindings, ...same } = process
  return {
    ...same,
    lastSeen: timeOf(lastSeenMillis),
    leaseEnds: timeOf(leaseEndsMillis),
    bindings: bindings.map(bindingOf)
  }
}

/** The fleet at one moment, as the API answers it. */
export const viewOf = ({ processes, holds, releases, problems, asOfMillis }: FleetView.View): FleetAnswers.View => ({
  asOf: timeOf(asOfMillis),
  processes: processes.map(processOf),
  holds: holds.map(ofHold),
  releases: releases.map(releaseOf),
  problems
})

export const answersOf = ({
  answers,
  missing
}: FleetView.ProcessAnswers): Pick<FleetAnswers.Commanded, "answers" | "missing"> => ({
  answers: answers.map(({ error, ...answer }) => ({ ...answer, ...given("error", error) })),
  missing
})
