/** Publishes the events of the service. */
import { EventPublisher } from "@eventbus/messaging"
import { adminEvents, ocrEvents, teamEvents, userEvents } from "../events.ts"

/** An event about a user, to topic `unraveldocs-users`. */
export const publishUserEvent = EventPublisher.to(userEvents)

/** An event about a team, to topic `unraveldocs-team-events`. */
export const publishTeamEvent = EventPublisher.to(teamEvents)

/** An action of an administrator, to topic `unraveldocs-admin-events`. */
export const publishAdminEvent = EventPublisher.to(adminEvents)

/** A request to read a document, to topic `unraveldocs-ocr`. */
export const publishOcrEvent = EventPublisher.to(ocrEvents)
