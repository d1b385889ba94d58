/** Secrets and texts of the options of a cluster. */
export * from "@eventbus/kafka-client/Secret"
