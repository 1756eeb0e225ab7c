/* audit_model.h - the audit that needs a model: its logits in a real text. Internal. */
#ifndef DPI_AUDIT_MODEL_H
#define DPI_AUDIT_MODEL_H

#include "dp/audit/audit.h"

dpi_status dpi_audit_model(dpi_audit *audit); /* A */

#endif
