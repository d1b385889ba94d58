/** The types of events, as header `event-type` has them. */

export const USER_REGISTERED = "UserRegistered"
export const USER_DELETION_SCHEDULED = "UserDeletionScheduled"
export const USER_DELETED = "UserDeleted"
export const PASSWORD_CHANGED = "PasswordChanged"
export const PASSWORD_RESET_REQUESTED = "PasswordResetRequested"
export const PASSWORD_RESET_SUCCESSFUL = "PasswordResetSuccessful"
export const WELCOME_EVENT = "WelcomeEvent"
export const ADMIN_CREATED = "AdminCreated"

export const OCR_REQUESTED = "OcrRequested"

export const ES_DOCUMENT_INDEX = "EsDocumentIndex"
export const ES_USER_INDEX = "EsUserIndex"
export const ES_PAYMENT_INDEX = "EsPaymentIndex"
export const ES_SUBSCRIPTION_INDEX = "EsSubscriptionIndex"

export const TEAM_TRIAL_EXPIRING = "TeamTrialExpiring"
export const TEAM_SUBSCRIPTION_CHARGED = "TeamSubscriptionCharged"
export const TEAM_SUBSCRIPTION_FAILED = "TeamSubscriptionFailed"
export const TEAM_CREATED = "TeamCreated"
