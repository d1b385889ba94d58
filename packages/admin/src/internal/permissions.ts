/**
 * The kinds of actions, for the schema and for the checks of tokens.
 */
export const permissions = ["view", "view-payload", "operate", "replay", "discard", "admin"] as const
