"""Any other database, through its JDBC driver."""
