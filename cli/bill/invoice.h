// A tenant's invoice: what one period of the ledger costs, as an HTML page and as a PDF.
//
// An invoice is reproducible: it is made from the ledger alone and contains no time of its making;
// its number ends with a digest of its figures. Once a period is over, its invoice is always the
// same file, to the last octet.
#pragma once

#include <string>
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
  std::string tenant, period, currency;
  bool final = true;  // true once the period is over
  std::vector<InvoiceLine> items, projects, users;
  Money cost, credit;
};

// `reply` is the ledger of this tenant and period, divided by project, user and item.
Invoice make_invoice(const std::string& tenant, const std::string& period,
                     const proto::LedgerReply& reply);
std::string invoice_page(const Invoice& invoice);  // HTML, needs no other file
std::string invoice_pdf(const Invoice& invoice);   // PDF 1.4, A4

}  // namespace gantry::cli
