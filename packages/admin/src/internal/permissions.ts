/**
 * The kinds of actions, for the schema and for the checks of tokens.
 */
export const permissions = ["view", "view-payload", "operate", "replay", "transform", "discard", "admin"] as const
