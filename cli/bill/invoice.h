// A tenant's invoice: what one period of the ledger costs, as an HTML page and as a PDF.
//
// An invoice is reproducible: it is made from the ledger alone and contains no time of its making;
// its number ends with a digest of its figures. Once a period is over, its invoice is always the
// same file, to the last octet.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/proto/ledger.h"

namespace gantry::cli {

struct InvoiceLine {
  std::string what;     // "gpu a100", "project research"
  std::string amount;   // "12.500 GPU-hours"; "" = none
  std::string average;  // per unit; "" = none
  Money cost, credit;
};

struct Invoice {
  std::string number;  // "fraud-2026-11-1a2b3c4d"
  std::string issuer;  // who writes it
  std::string tenant, period, currency;
  std::string cost_center;        // the tenant's label "cost-center"; "" = none
  std::string first, last, date;  // days: of the period, and the first one after it: "2026-11-01"
  std::string zone;               // where these days begin and end
  bool exact = false;             // six decimals and no separators
  bool final = true;              // true once the period is over
  std::vector<InvoiceLine> items, projects, users;
  Money cost, credit;
};

// `reply` is the ledger of this tenant and period, divided by project, user, item and the label
// "cost-center". `cluster` is the issuer if no price book names one.
Invoice make_invoice(const std::string& tenant, const std::string& period,
                     const std::string& cluster, const proto::LedgerReply& reply);
// An amount as the invoice shows it: "1,234.50", or exactly "1234.500000".
std::string shown_amount(const Invoice& invoice, Money money);
// The header of an invoice, above its lines, as pairs of a name and a value.
std::vector<std::pair<std::string, std::string>> invoice_head(const Invoice& invoice);
// The sentence below the lines about how the amounts are rounded.
std::string invoice_foot(const Invoice& invoice);
std::string invoice_page(const Invoice& invoice);  // HTML, needs no other file
std::string invoice_pdf(const Invoice& invoice);   // PDF 1.4, A4

}  // namespace gantry::cli
